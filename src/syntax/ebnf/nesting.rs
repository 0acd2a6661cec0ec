//! How deep the brackets of a grammar nest, found without recursion, before a parser recurses into them.

/// The offset of the first bracket that is nested more than `limit` deep.
///
/// Quotes, classes, expressions and comments are skipped as the parser reads them. Where one of them is not closed,
/// the parser goes no further either.
pub(super) fn deeper_than(text: &str, limit: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest {
            [b'/', b'*', ..] => 2 + through(&rest[2..], b"*/"),
            [b'(', b'*', ..] => 2 + through(&rest[2..], b"*)"),
            [b'/', b'/', ..] => through(rest, b"\n"),
            [b'#', b'x', c, ..] if c.is_ascii_hexdigit() => 1,
            [b'#', ..] => through(rest, b"\n"),
            [quote @ (b'"' | b'\'' | b'/'), ..] => quoted(rest, *quote),
            [b'[', ..] => quoted(rest, b']'),
            [b'<', b'|', ..] => 2 + through(&rest[2..], b"|>"),
            _ => 1,
        };
        if length == 1 {
            match bytes[at] {
                b'(' | b'{' => depth += 1,
                b')' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if depth > limit {
            return Some(at);
        }
        at += length;
    }
    None
}

/// The length up to and including the first `end`.
pub(super) fn through(bytes: &[u8], end: &[u8]) -> usize {
    bytes
        .windows(end.len())
        .position(|window| window == end)
        .map_or(bytes.len(), |at| at + end.len())
}

/// The length of what begins with one byte and runs to an unescaped `end`.
pub(super) fn quoted(bytes: &[u8], end: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == end => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}
