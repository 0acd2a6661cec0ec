//! Predictions from what the other samples of a request wrote at the same place.

use super::context::mixed;
use super::table::Table;
use super::{Candidate, Context, Observation, Predictor};
use crate::draft::Origin;

/// The fewest and the most tokens of a context.
const LENGTHS: [usize; 2] = [1, 3];

/// The share of samples that continued with each token after the last few ([Li et al.
/// 2025](https://arxiv.org/abs/2503.05330)).
///
/// There is one store for each request: its samples answer the same prompt, so where most of them continued
/// with the same token, the next one probably does too. Samples under a constraint are also aligned by its
/// state, which is the same for all of them at the same place of a document; the paper aligns by tokens
/// alone.
#[derive(Clone, Debug)]
pub struct Consensus(Table);

impl Consensus {
    /// Creates an empty store of at most `bytes` bytes.
    pub fn new(bytes: usize) -> Consensus {
        Consensus(Table::new(bytes))
    }
}

fn key(at: &Context<'_>, length: usize) -> Option<u64> {
    Some(mixed(at.state.unwrap_or(0), at.suffix(length)?))
}

impl Predictor for Consensus {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let [shortest, longest] = LENGTHS;
        let rows = (shortest..=longest).rev();
        let mut rows = rows.filter_map(|length| self.0.get(key(at, length)?));
        if let Some(row) = rows.next() {
            row.candidates(Origin::Consensus, found);
        }
    }

    fn learn(&mut self, at: &Context<'_>, seen: &Observation<'_>) {
        let [shortest, longest] = LENGTHS;
        let Some(drawn) = seen.drawn else { return };
        for length in shortest..=longest {
            if let Some(key) = key(at, length) {
                self.0.learn(key).count(drawn);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
