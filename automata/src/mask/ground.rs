//! Tries by number, and what lies below their nodes.

use std::sync::Arc;

use crate::vocab::Trie;

/// A trie with the number by which the tables know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'t> {
    pub(crate) trie: &'t Trie,
    pub(super) number: u64,
}

/// The number of the vocabulary's trie.
pub(super) const VOCABULARY: u64 = 0;

/// The nodes that are entered after a place where something may have ended, with their bytes.
pub(super) type Exits = Arc<[(u8, u32)]>;

/// The children of a node, or of the root, with their bytes.
pub(super) fn children(trie: &Trie, node: Option<usize>) -> impl Iterator<Item = (u8, u32)> + '_ {
    trie.children(node).map(|place| trie.child(place))
}
