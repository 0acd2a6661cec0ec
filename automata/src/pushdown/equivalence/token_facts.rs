//! The queries about the tokens of a vocabulary.

use std::sync::Arc;

use crate::language::ByteSet;
use crate::pushdown::object::key_set::KeySet;

/// The contents of tokens.
pub(crate) trait TokenFacts {
    /// Returns the bytes that occur in some token directly after `opening`, with one of `before` earlier in
    /// the token.
    fn after(&self, before: &ByteSet, opening: u8) -> ByteSet;

    /// Returns all texts within tokens that begin and end with these bytes, at different positions; `None` if
    /// there are too many.
    fn texts(&self, opening: u8, closing: u8) -> Option<Arc<KeySet>>;

    /// Returns the maximum number of these bytes in one token.
    fn most(&self, bytes: &ByteSet) -> usize;

    /// Returns `true` if some token begins with these bytes.
    fn begins(&self, text: &[u8]) -> bool;
}
