//! A row of a batch: one sequence and the words of its mask.

use super::{Ends, Grammar, MaskRequest, State};
use crate::error::Exhausted;

/// A sequence of a batch: its grammar, its state, and how it may end.
#[derive(Clone, Debug)]
pub struct BatchRow {
    /// The grammar of the sequence.
    pub grammar: Grammar,
    /// The state of the sequence.
    pub state: State,
    /// The maximum number of further tokens, as in [`MaskRequest::within`]; `None` for no limit.
    pub budget: Option<usize>,
    /// The tokens that end the sequence; `None` for the vocabulary's own.
    pub ends: Option<Ends>,
}

impl BatchRow {
    /// Returns the mask request of the row.
    pub fn request(&self) -> MaskRequest<'_> {
        MaskRequest::from(self.state)
            .within(self.budget)
            .ending(self.ends.as_ref())
    }
}

/// A row, its number, and the words that its mask is written to.
pub(super) struct Job<'w> {
    pub(super) number: usize,
    pub(super) row: BatchRow,
    pub(super) words: &'w mut [u32],
}

impl Job<'_> {
    pub(super) fn fill(&mut self) -> Result<(), Exhausted> {
        self.row.grammar.fill(self.row.request(), self.words)
    }
}
