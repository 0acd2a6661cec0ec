//! The context of all queries about a budget: a machine, a vocabulary, and the special tokens.

use crate::mask::{Specials, Tables};
use crate::pushdown::Machine;
use crate::vocab::Vocabulary;

/// The maximum number of trie nodes of a small vocabulary, for which all completions are searched.
const SMALL_TRIE: usize = 512;

/// A grammar over a vocabulary, with its special tokens.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) tables: &'a Tables,
    /// The token ids of the special tokens that the grammar names.
    pub(crate) specials: &'a Specials,
}

impl<'a> Place<'a> {
    /// Returns the vocabulary of the tables.
    pub(super) fn vocabulary(&self) -> &'a Vocabulary {
        self.tables.vocabulary()
    }

    /// Returns `true` if the vocabulary is so small that all completions are searched.
    pub(super) fn is_small(&self) -> bool {
        self.vocabulary().trie().nodes().len() <= SMALL_TRIE
    }
}
