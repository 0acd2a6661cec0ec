//! Trigrams of drawn tokens: the predictor of adaptive draft-verification.

use super::table::Table;
use super::{Candidate, Context, Observation, Predictor};
use crate::draft::Origin;

/// The name under which its rows are saved.
const KEPT_AS: &str = "tri-grams 1";

/// Counts how often each token followed the last two ([Liu et al. 2024](https://arxiv.org/abs/2407.12021),
/// ADED).
///
/// The matrix approximates the sampled law by the tokens drawn; older draws count less. If the last two
/// tokens were never seen, the last one is looked up alone.
#[derive(Clone, Debug)]
pub struct Trigram(Table);

impl Trigram {
    /// Creates an empty matrix of at most `bytes` bytes.
    pub fn new(bytes: usize) -> Trigram {
        Trigram(Table::new(bytes))
    }
}

impl Predictor for Trigram {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let row = |length| self.0.get(at.suffix(length)?);
        if let Some(row) = row(2).or_else(|| row(1)) {
            row.candidates(Origin::Trigram, found);
        }
    }

    fn learn(&mut self, at: &Context<'_>, seen: &Observation<'_>) {
        let Some(drawn) = seen.drawn else { return };
        for length in [1, 2] {
            if let Some(last) = at.suffix(length) {
                self.0.learn(last).count(drawn);
            }
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
