//! Which subtrees of a trie stay within a language, as far as their characters tell.

pub(super) mod closed;
pub(super) mod loops;
