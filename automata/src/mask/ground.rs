//! The tries that walks run through, each with a number.

use std::sync::Arc;

use crate::vocab::Trie;

/// A trie, and its number in the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'t> {
    pub(crate) trie: &'t Trie,
    pub(super) number: u64,
}

/// The number of the vocabulary's trie.
pub(super) const VOCABULARY: u64 = 0;

/// The nodes that are entered right after the end of a word, with their bytes.
pub(super) type Exits = Arc<[(u8, u32)]>;

/// Returns the children of a node, or of the root, with their bytes.
pub(super) fn children(trie: &Trie, node: Option<usize>) -> impl Iterator<Item = (u8, u32)> + '_ {
    trie.children(node).map(|place| trie.child(place))
}
