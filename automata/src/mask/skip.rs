//! Finds subtrees of a trie that stay within a language, judging by their characters alone.

pub(super) mod closed;
pub(super) mod loops;
