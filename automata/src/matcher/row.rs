//! One sequence of a batch, and where its mask goes.

use super::{Ends, Grammar, State};
use crate::error::Exhausted;

/// One sequence of a batch: its grammar, where it stands, and how it may end.
#[derive(Clone, Debug)]
pub struct Row {
    /// What the sequence obeys.
    pub grammar: Grammar,
    /// Where it stands.
    pub state: State,
    /// The tokens that it may still take, as in [`Grammar::mask_within`]; `None` for no limit.
    pub budget: Option<usize>,
    /// The tokens that end it; `None` for those of the vocabulary.
    pub ends: Option<Ends>,
}

/// A row and the words that its mask goes to.
pub(super) struct Job<'w> {
    pub(super) number: usize,
    pub(super) row: Row,
    pub(super) words: &'w mut [u32],
}

impl Job<'_> {
    pub(super) fn fill(&mut self) -> Result<(), Exhausted> {
        let Row {
            grammar,
            state,
            budget,
            ends,
        } = &self.row;
        grammar.fill(*state, *budget, ends.as_ref(), self.words)
    }
}
