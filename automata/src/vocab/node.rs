//! The nodes of the trie of all text tokens.

/// An edge of the [`Trie`](super::Trie) and the node below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The byte on the edge into this node.
    pub byte: u8,
    /// The number of bytes from the root, at least 1; saturates at 65,535.
    pub depth: u16,
    /// The index after the last node of this subtree.
    pub end: u32,
    /// The index in the trie's tokens of the first that ends here; the tokens are `tokens[first..first +
    /// count]`.
    pub first: u32,
    /// The number of tokens that end here; several ids may have the same bytes.
    pub count: u32,
}

impl Node {
    /// Returns the places, among the tokens of the trie, of the tokens that end here.
    pub(crate) fn places(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }
}
