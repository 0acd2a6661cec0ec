//! Token Recycling: for each token, the likeliest tokens of the last row after it.

use super::table::Table;
use super::{Candidate, Context, Observation, Predictor};
use crate::draft::Origin;

/// The name under which its rows are saved.
const KEPT_AS: &str = "recycling 1";

/// The adjacency matrix of Token Recycling ([Luo et al. 2024](https://arxiv.org/abs/2408.08696)): `M[x]` is
/// the top 8 of the last row that the model gave after the token `x`.
///
/// Rows are stored before any mask: one matrix serves all constraints. It learns from every row, including
/// those of drafts that were not accepted. The paper's matrix has a row for every token of the vocabulary, 2
/// MB for 32,000 tokens; this one keeps the most recent rows, as many as fit.
#[derive(Clone, Debug)]
pub struct Recycling(Table);

impl Recycling {
    /// Creates an empty matrix of at most `bytes` bytes.
    pub fn new(bytes: usize) -> Recycling {
        Recycling(Table::new(bytes))
    }
}

impl Predictor for Recycling {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        if let Some(row) = at.suffix(1).and_then(|last| self.0.get(last)) {
            row.candidates(Origin::Recycled, found);
        }
    }

    fn learn(&mut self, at: &Context<'_>, seen: &Observation<'_>) {
        if let Some(last) = at.suffix(1) {
            self.0.learn(last).replace(seen.likely);
        }
    }

    fn save(&self, keep: &mut dyn FnMut(&'static str, Vec<u8>)) {
        keep(KEPT_AS, self.0.save());
    }

    fn restore(&mut self, name: &str, part: &[u8]) -> bool {
        name == KEPT_AS && self.0.restore(part)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
