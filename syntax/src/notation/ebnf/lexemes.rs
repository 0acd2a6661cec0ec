//! Finds the lexemes of a grammar text without a parser: for facts that are needed before a parser runs, and
//! for those that a parse tree no longer shows, such as whether two parts touch.
//!
//! Quotes, classes, expressions and comments are read as `grammar.pest` reads them. One that is not closed
//! extends to the end of the text; the parser reads no further there either.

/// The kind of a lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, or a number.
    Name,
    /// `::=`, `:=`, `=` or `:`.
    Define,
    /// A text in quotes.
    Literal,
    /// `[…]`.
    Class,
    /// `/…/` with its flags.
    Expression,
    /// `<|…|>`.
    Special,
    /// `#x41`.
    Point,
    /// Any other byte.
    Sign(u8),
}

/// A lexeme with its place in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lexeme {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Lexeme {
    /// Returns the text of the lexeme.
    pub(super) fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// An iterator over the lexemes of a text in order, without blanks and comments.
pub(super) struct Lexemes<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Lexemes<'t> {
    /// Returns an iterator over the lexemes of a text.
    pub(super) fn new(text: &'t str) -> Lexemes<'t> {
        Lexemes {
            bytes: text.as_bytes(),
            at: 0,
        }
    }
}

impl Iterator for Lexemes<'_> {
    type Item = Lexeme;

    fn next(&mut self) -> Option<Lexeme> {
        loop {
            let start = self.at;
            let rest = &self.bytes[start..];
            let (length, kind) = lexeme(rest)?;
            self.at += length;
            if let Some(kind) = kind {
                let end = self.at;
                return Some(Lexeme { kind, start, end });
            }
        }
    }
}

/// Returns the length and kind of the lexeme at the beginning of a text; the kind of a blank or a comment is
/// `None`.
fn lexeme(rest: &[u8]) -> Option<(usize, Option<Kind>)> {
    let (length, kind) = match rest {
        [] => return None,
        [b'/', b'*', ..] => (2 + through(&rest[2..], b"*/"), None),
        [b'(', b'*', ..] => (2 + through(&rest[2..], b"*)"), None),
        [b'/', b'/', ..] => (through(rest, b"\n"), None),
        [b'#', b'x', digit, ..] if digit.is_ascii_hexdigit() => {
            (2 + count(&rest[2..], u8::is_ascii_hexdigit), Some(Kind::Point))
        }
        [b'#', ..] => (through(rest, b"\n"), None),
        [quote @ (b'"' | b'\''), ..] => (quoted(rest, *quote), Some(Kind::Literal)),
        [b'/', ..] => {
            let body = quoted(rest, b'/');
            (body + count(&rest[body..], is_flag), Some(Kind::Expression))
        }
        [b'[', ..] => (quoted(rest, b']'), Some(Kind::Class)),
        [b'<', b'|', ..] => (2 + through(&rest[2..], b"|>"), Some(Kind::Special)),
        [b':', b':', b'=', ..] => (3, Some(Kind::Define)),
        [b':', b'=', ..] => (2, Some(Kind::Define)),
        [b':' | b'=', ..] => (1, Some(Kind::Define)),
        [first, ..] if is_name(first) => (count(rest, is_name), Some(Kind::Name)),
        [first, ..] if first.is_ascii_whitespace() => (1, None),
        [first, ..] => (1, Some(Kind::Sign(*first))),
    };
    Some((length.min(rest.len()), kind))
}

/// Checks whether a byte may occur in a name.
pub(super) fn is_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_flag(byte: &u8) -> bool {
    matches!(byte, b'i' | b'm' | b's' | b'x')
}

fn count(bytes: &[u8], is_one: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_one(byte)).count()
}

/// Returns the length up to and including the first `end`.
fn through(bytes: &[u8], end: &[u8]) -> usize {
    let found = bytes.windows(end.len()).position(|window| window == end);
    found.map_or(bytes.len(), |at| at + end.len())
}

/// Returns the length of a text that begins with one byte and extends to an unescaped `end`.
fn quoted(bytes: &[u8], end: u8) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_comments_stand_between_lexemes() {
        let text = "a ::= 'b\\'' [^\\]]+ /x\\/y/i#x41 // no\n <|end|>, é (* no *) # no\n\"open ]";
        let read: Vec<&str> = Lexemes::new(text).map(|lexeme| lexeme.of(text)).collect();
        // A non-ASCII letter is a sign for each of its bytes.
        let expected = [
            "a", "::=", "'b\\''", "[^\\]]", "+", "/x\\/y/i", "#x41", "<|end|>", ",", "", "", "\"open ]",
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn what_ends_with_a_backslash_ends_there() {
        for text in ["\"\\", "[\\", "/\\"] {
            let ends: Vec<usize> = Lexemes::new(text).map(|lexeme| lexeme.end).collect();
            assert_eq!(ends, [2], "{text}");
        }
    }
}
