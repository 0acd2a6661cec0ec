//! Finds how deep the brackets of a grammar nest, without recursion, before a parser recurses into them.

use super::lexemes::{Kind, Lexemes};

/// Returns the offset of the first bracket that is nested more than `limit` deep.
pub(super) fn deeper_than(text: &str, limit: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for lexeme in Lexemes::new(text) {
        match lexeme.kind {
            Kind::Sign(b'(' | b'{') => depth += 1,
            Kind::Sign(b')' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return Some(lexeme.start);
        }
    }
    None
}
