//! The nodes of the trie of all text tokens.

/// One edge of the [`Trie`](super::Trie) and the node below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The byte on the edge into this node.
    pub byte: u8,
    /// The number of bytes from the root, at least 1; saturates at 65,535.
    pub depth: u16,
    /// One past the last node of this subtree.
    pub end: u32,
    /// The tokens that end here are `tokens[first..first + count]` of the trie.
    pub first: u32,
    /// How many tokens end here; several ids may share the same bytes.
    pub count: u32,
}

impl Node {
    /// The places among the tokens of the trie of those that end here.
    pub(crate) fn places(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }
}
