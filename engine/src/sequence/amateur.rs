//! The second text of a sequence whose rows are a contrast with those after another prompt.
//!
//! ```text
//!   expert    prompt ████████████ answer ███ drafts ▒▒ ── rows e ─┐
//!   amateur   other prompt ████ the same answer ███ ▒▒ ── rows a ─┴─► v e − w a, the rows that are drawn from
//! ```
//!
//! Both texts have keys and values of their own. They are fed in the same pass, with the same drafts, and
//! their rows are combined before anything else reads them, so that laws, filters, drafts and searches see
//! the rows of one model. A pass that feeds the rest of the other prompt feeds nothing of the sequence
//! itself.

use crate::blocks::{Blocks, Table};
use crate::request::ContrastWith;

/// The keys and values of the second text. Its tokens are those of the other prompt and the answer of the
/// sequence.
pub(crate) struct Amateur {
    prompt: Vec<u32>,
    /// The number of tokens whose keys and values are in the cache.
    pub(crate) computed: usize,
    /// The blocks of the cache.
    pub(crate) table: Table,
}

impl Amateur {
    /// Returns the second text of a contrast with another prompt.
    pub(super) fn of(contrast: &ContrastWith) -> Option<Self> {
        Some(Amateur {
            prompt: contrast.prompt()?.to_vec(),
            computed: 0,
            table: Table::default(),
        })
    }

    /// Returns the number of tokens of the text, with an answer of this length.
    pub(crate) fn len(&self, answer: usize) -> usize {
        self.prompt.len() + answer
    }

    /// Returns the tokens of the text.
    pub(crate) fn tokens(&self, answer: &[u32]) -> Vec<u32> {
        [&self.prompt, answer].concat()
    }

    /// Returns the number of tokens that must be fed before the last one, whose row is drawn from.
    pub(crate) fn behind(&self, answer: usize) -> usize {
        (self.len(answer) - 1).saturating_sub(self.computed)
    }

    /// Takes over what other texts have computed of this one.
    pub(crate) fn extend(&mut self, answer: &[u32], blocks: &mut Blocks) {
        let tokens = self.tokens(answer);
        let known = blocks.extend(&mut self.table, &tokens);
        self.computed = self.computed.max(known);
    }

    /// Returns the text of a fork with an answer of this length, which shares the blocks.
    pub(super) fn fork(&self, answer: usize, blocks: &mut Blocks) -> Self {
        let computed = self.computed.min(self.len(answer) - 1);
        Amateur {
            prompt: self.prompt.clone(),
            computed,
            table: blocks.fork(&self.table, computed),
        }
    }

    /// Keeps what is computed of the first `same` tokens of the answer, which now has `answer` tokens, and
    /// releases the blocks of the others.
    pub(crate) fn keep(&mut self, (same, answer): (usize, usize), blocks: &mut Blocks) {
        self.computed = self.computed.min(self.len(same)).min(self.len(answer) - 1);
        blocks.rewind(&mut self.table, self.computed);
    }

    /// Returns the tokens of the next `count` slots.
    pub(crate) fn next(&self, answer: &[u32], count: usize) -> Vec<u32> {
        self.tokens(answer)[self.computed..self.computed + count].to_vec()
    }

    /// Remembers the computed blocks by their tokens, so that other texts find them.
    pub(crate) fn commit(&mut self, answer: &[u32], blocks: &mut Blocks) {
        let tokens = self.tokens(answer);
        blocks.commit(&mut self.table, &tokens, self.computed);
    }

    /// Releases the blocks.
    pub(crate) fn forget(&mut self, blocks: &mut Blocks) {
        blocks.release(self.table.take());
        self.computed = 0;
    }
}
