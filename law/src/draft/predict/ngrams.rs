//! Rows keyed by the last few tokens: the store of STAND.

use super::Observation;
use super::rows::{Lesson, RowRule, Rows};
use crate::draft::Origin;
use std::ops::RangeInclusive;

/// The average of the model's rows after the last few tokens ([Song et al.
/// 2025](https://arxiv.org/abs/2506.04708), STAND).
///
/// Most n-gram drafters count tokens; this one stores probabilities, so that its chances show how sure the
/// model was. Contexts of 3, 2 and 1 tokens are looked up, the longest known one first.
///
/// The paper draws its drafts without replacement, by Gumbel-top-k; [`Sampled`](crate::draft::Sampled) does
/// so. If the store is accurate, the first token drawn is always accepted, while the `k` likeliest tokens,
/// verified by drawing once, are accepted with the sum of their probabilities. At temperature 0 both are the
/// same.
pub type NGrams = Rows<NGramRows>;

/// The rule of [`NGrams`].
pub enum NGramRows {}

impl RowRule for NGramRows {
    const KEPT_AS: &'static str = "n-grams 1";
    const ORIGIN: Origin = Origin::NGram;
    const CONTEXTS: RangeInclusive<usize> = 1..=3;

    fn lesson<'s>(seen: &Observation<'s>) -> Lesson<'s> {
        Lesson::Average(seen.likely)
    }
}
