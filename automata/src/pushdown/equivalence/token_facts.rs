//! What is asked about the tokens of a vocabulary.

use std::sync::Arc;

use crate::language::ByteSet;
use crate::pushdown::object::key_set::KeySet;

/// What tokens hold.
pub(crate) trait TokenFacts {
    /// The bytes that stand in some token directly after `opening`, where one of `before` stands earlier.
    fn behind(&self, before: &ByteSet, opening: u8) -> ByteSet;

    /// All texts within tokens that begin and end with these bytes, at different places; `None` if they are
    /// very many.
    fn texts(&self, opening: u8, closing: u8) -> Option<Arc<KeySet>>;

    /// How many bytes of these some token has at most.
    fn most(&self, bytes: &ByteSet) -> usize;

    /// Whether some token begins with these bytes.
    fn begins(&self, text: &[u8]) -> bool;
}
