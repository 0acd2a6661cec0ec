//! Estimates how much memory the syntax tree of a grammar takes, before the parser builds it.

use super::lexemes::{Kind, Lexemes};
use crate::notation::reading::outline::TOKEN_BYTES;

/// Returns the approximate size in bytes of the syntax tree of a text.
pub(super) fn bytes_of_tree(text: &str) -> usize {
    tokens(text).saturating_mul(TOKEN_BYTES)
}

/// Returns the number of names, quoted texts, classes and signs. A `::=` accounts for the pairs of a whole
/// rule, and counts as three.
fn tokens(text: &str) -> usize {
    let counts = Lexemes::new(text).map(|lexeme| match lexeme.kind {
        Kind::Define => lexeme.end - lexeme.start,
        _ => 1,
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_names_quotes_classes_and_signs() {
        assert_eq!(tokens("list ::= item (\",\" item)* # \"no\" tokens"), 10);
        assert_eq!(tokens("a = /x y/ [a b] <|end|> (* b c *) #x20;"), 7);
        assert_eq!(tokens("\"open"), 1);
    }
}
