//! What all questions about a budget are about: a machine, a vocabulary, and the special tokens.

use crate::mask::Tables;
use crate::pushdown::Machine;
use crate::vocab::Vocabulary;

/// Completions are searched among all texts where the trie of the vocabulary has no more nodes than this.
const SMALL_TRIE: usize = 512;

/// A grammar over a vocabulary.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) tables: &'a Tables,
    /// The tokens of the special tokens that the grammar names.
    pub(crate) specials: &'a [u32],
}

impl<'a> Place<'a> {
    /// The vocabulary of the tables.
    pub(super) fn vocabulary(&self) -> &'a Vocabulary {
        self.tables.vocabulary()
    }

    /// Whether the vocabulary is so small that completions are searched among all texts.
    pub(super) fn is_small(&self) -> bool {
        self.vocabulary().trie().nodes().len() <= SMALL_TRIE
    }
}
