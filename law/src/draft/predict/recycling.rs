//! Token Recycling: for each token, the likeliest tokens of the last row after it.

use super::Observation;
use super::rows::{Lesson, RowRule, Rows};
use crate::draft::Origin;
use std::ops::RangeInclusive;

/// The adjacency matrix of Token Recycling ([Luo et al. 2024](https://arxiv.org/abs/2408.08696)): `M[x]` is
/// the top 8 of the last row that the model gave after the token `x`.
///
/// Rows are stored before any mask: one matrix serves all constraints. It learns from every row, including
/// those of drafts that were not accepted. The paper's matrix has a row for every token of the vocabulary, 2
/// MB for 32,000 tokens; this one keeps the most recent rows, as many as fit.
pub type Recycling = Rows<RecyclingRows>;

/// The rule of [`Recycling`].
pub enum RecyclingRows {}

impl RowRule for RecyclingRows {
    const KEPT_AS: &'static str = "recycling 1";
    const ORIGIN: Origin = Origin::Recycled;
    const CONTEXTS: RangeInclusive<usize> = 1..=1;

    fn lesson<'s>(seen: &Observation<'s>) -> Lesson<'s> {
        Lesson::Replace(seen.likely)
    }
}
