//! About how much memory the syntax tree of a grammar takes, found before the parser makes it.

use super::nesting::{quoted, through};

/// The bytes of a token with the pairs of the parser that lead to it.
const TOKEN_BYTES: usize = 320;

/// The bytes of the syntax tree of a text.
pub(super) fn bytes_of_tree(text: &str) -> usize {
    tokens(text.as_bytes()).saturating_mul(TOKEN_BYTES)
}

/// How many names, quoted texts, classes and signs there are.
fn tokens(bytes: &[u8]) -> usize {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let (mut count, mut at) = (0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (length, counts) = match rest {
            [b'/', b'*', ..] => (2 + through(&rest[2..], b"*/"), 0),
            [b'(', b'*', ..] => (2 + through(&rest[2..], b"*)"), 0),
            [b'/', b'/', ..] => (through(rest, b"\n"), 0),
            [b'#', b'x', c, ..] if c.is_ascii_hexdigit() => (2, 1),
            [b'#', ..] => (through(rest, b"\n"), 0),
            [quote @ (b'"' | b'\'' | b'/'), ..] => (quoted(rest, *quote), 1),
            [b'[', ..] => (quoted(rest, b']'), 1),
            [b'<', b'|', ..] => (2 + through(&rest[2..], b"|>"), 1),
            [first, ..] if is_name(*first) => (rest.iter().take_while(|&&byte| is_name(byte)).count(), 1),
            [first, ..] => (1, usize::from(!first.is_ascii_whitespace())),
            [] => break,
        };
        count += counts;
        at += length;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_names_quotes_classes_and_signs() {
        assert_eq!(tokens(b"list ::= item (\",\" item)* # \"no\" tokens"), 10);
        assert_eq!(tokens(b"a = /x y/ [a b] <|end|> (* b c *) #x20;"), 8);
        assert_eq!(tokens(b"\"open"), 1);
    }
}
