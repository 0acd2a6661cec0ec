//! Trigrams of drawn tokens: the predictor of adaptive draft-verification.

use super::Observation;
use super::rows::{Lesson, RowRule, Rows};
use crate::draft::Origin;
use std::ops::RangeInclusive;

/// Counts how often each token followed the last two ([Liu et al. 2024](https://arxiv.org/abs/2407.12021),
/// ADED).
///
/// The matrix approximates the sampled law by the tokens drawn; older draws count less. If the last two
/// tokens were never seen, the last one is looked up alone.
pub type Trigram = Rows<TrigramRows>;

/// The rule of [`Trigram`].
pub enum TrigramRows {}

impl RowRule for TrigramRows {
    const KEPT_AS: &'static str = "tri-grams 1";
    const ORIGIN: Origin = Origin::Trigram;
    const CONTEXTS: RangeInclusive<usize> = 1..=2;

    fn lesson<'s>(seen: &Observation<'s>) -> Lesson<'s> {
        Lesson::Count(seen.drawn)
    }
}
