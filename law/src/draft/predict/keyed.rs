//! Rows keyed by the constraint's state: keys, enums and names of tools, learned across requests.

use super::context::mixed;
use super::table::Table;
use super::{Candidate, Context, Observation, Predictor};
use crate::draft::Origin;

/// The name under which its rows are saved. The number changes with the definition of context keys, which
/// `tests/masks/state_keys.rs` detects: rows under old keys would never be found.
const KEPT_AS: &str = "state-keyed 2";

/// The most tokens that a context has besides the state.
const LONGEST_CONTEXT: usize = 2;

/// The average of the model's masked rows at a state of the constraint, after the last few tokens.
///
/// A state of a grammar determines where in the document a text is, which the last tokens do not: after `":
/// "` comes a different value for each key. So the tokens at a place of a schema are learned from all texts
/// that reached it, however different they were before. Rows are stored after the mask, because the mask is a
/// function of the state; each slot holds only tokens that may be drawn. The context is the state with the
/// last 2, 1 or 0 tokens, the longest known one first: in free text the state is the same everywhere, and the
/// tokens decide.
///
/// A state has the same key in every compile of an equal constraint and in every process, so what is learned
/// serves all requests with the same tools or the same schema, and may be saved across restarts.
#[derive(Clone, Debug)]
pub struct StateKeyed(Table);

impl StateKeyed {
    /// Creates an empty store of at most `bytes` bytes.
    pub fn new(bytes: usize) -> StateKeyed {
        StateKeyed(Table::new(bytes))
    }
}

fn key(at: &Context<'_>, length: usize) -> Option<u64> {
    Some(mixed(at.state?, at.suffix(length)?))
}

impl Predictor for StateKeyed {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let rows = (0..=LONGEST_CONTEXT).rev();
        let mut rows = rows.filter_map(|length| self.0.get(key(at, length)?));
        if let Some(row) = rows.next() {
            row.candidates(Origin::Keyed, found);
        }
    }

    fn learn(&mut self, at: &Context<'_>, seen: &Observation<'_>) {
        for length in 0..=LONGEST_CONTEXT {
            if let Some(key) = key(at, length) {
                self.0.learn(key).average(seen.allowed);
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
