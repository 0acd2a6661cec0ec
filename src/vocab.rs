//! Vocabularies: what each token writes, as bytes.
//!
//! A [`Vocabulary`] knows the exact bytes of every text token, keeps special tokens apart, and holds all text tokens
//! in a [`Trie`] laid out in depth-first order, so that a walk is a scan with skips.

mod trie;
mod vocabulary;

pub use trie::{Node, Trie};
pub use vocabulary::{TokenKind, Vocabulary, VocabularyError};
