//! Rows keyed by the last few tokens: the store of STAND.

use super::table::Table;
use super::{Candidate, Context, Observation, Predictor};
use crate::draft::Origin;

/// The name under which its rows are saved.
const KEPT_AS: &str = "n-grams 1";

/// The most tokens of a context.
const LONGEST_CONTEXT: usize = 3;

/// The average of the model's rows after the last few tokens ([Song et al.
/// 2025](https://arxiv.org/abs/2506.04708), STAND).
///
/// Most n-gram drafters count tokens; this one stores probabilities, so that its chances show how sure the
/// model was. Contexts of 3, 2 and 1 tokens are looked up, the longest known one first. The paper draws its
/// drafts by Gumbel-top-k; here they are the likeliest tokens, which drawing once accepts with the same
/// probability as long as the store is accurate.
#[derive(Clone, Debug)]
pub struct NGrams(Table);

impl NGrams {
    /// Creates an empty store of at most `bytes` bytes.
    pub fn new(bytes: usize) -> NGrams {
        NGrams(Table::new(bytes))
    }
}

impl Predictor for NGrams {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let rows = (1..=LONGEST_CONTEXT).rev();
        let mut rows = rows.filter_map(|length| self.0.get(at.suffix(length)?));
        if let Some(row) = rows.next() {
            row.candidates(Origin::NGram, found);
        }
    }

    fn learn(&mut self, at: &Context<'_>, seen: &Observation<'_>) {
        for length in 1..=LONGEST_CONTEXT {
            if let Some(last) = at.suffix(length) {
                self.0.learn(last).average(seen.likely);
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
