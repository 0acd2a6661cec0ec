//! One sequence of a batch, and where its mask goes.

use super::{Ends, Grammar, MaskRequest, State};
use crate::error::Exhausted;

/// One sequence of a batch: its grammar, where it stands, and how it may end.
#[derive(Clone, Debug)]
pub struct BatchRow {
    /// What the sequence obeys.
    pub grammar: Grammar,
    /// Where it stands.
    pub state: State,
    /// The tokens that it may still take, as in [`MaskRequest::within`]; `None` for no limit.
    pub budget: Option<usize>,
    /// The tokens that end it; `None` for those of the vocabulary.
    pub ends: Option<Ends>,
}

impl BatchRow {
    /// What its mask is asked for.
    pub fn request(&self) -> MaskRequest<'_> {
        MaskRequest::from(self.state)
            .within(self.budget)
            .ending(self.ends.as_ref())
    }
}

/// A row and the words that its mask goes to.
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
