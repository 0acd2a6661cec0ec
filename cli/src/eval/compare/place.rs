//! The place in a JSON text at which a byte stands.

use std::fmt;

/// The kind of place at which engines disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    /// The end of the text.
    End,
    /// White space between the parts of the text.
    Space,
    /// The characters of a key.
    Key,
    /// The characters of a string.
    Text,
    /// An escape in a key or string, or a backslash that begins one.
    Escape,
    /// Parts of a character of several bytes.
    Character,
    /// A number.
    Number,
    /// The first character of a value, or what stands between values.
    Structure,
    /// One way to cut a text into tokens, of several.
    Cut,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::End => "the end of the text",
            Place::Space => "white space",
            Place::Key => "in a key",
            Place::Text => "in a string",
            Place::Escape => "escapes in strings",
            Place::Character => "bytes within a character",
            Place::Number => "in a number",
            Place::Structure => "which value or key comes, or whether one does",
            Place::Cut => "the same text in other tokens",
        })
    }
}

/// What a text that is read from its beginning is within.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Between,
    Number,
    /// A key or string, and the escape that has begun in it.
    String {
        key: bool,
        escape: Escape,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// So many digits of a code are missing.
    Digits(u8),
}

impl Escape {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Escape::None, b'\\') => Escape::Begun,
            (Escape::Begun, b'u') => Escape::Digits(4),
            (Escape::Digits(left), _) if left > 1 => Escape::Digits(left - 1),
            _ => Escape::None,
        }
    }
}

impl Place {
    /// Returns the place of a byte after a text; `None` is the end of the text.
    pub(super) fn of(before: &[u8], byte: Option<u8>) -> Self {
        let Some(byte) = byte else { return Place::End };
        match scan(before) {
            Within::String { escape, .. } if escape != Escape::None || byte == b'\\' => Place::Escape,
            Within::String { .. } if (0x80..0xC0).contains(&byte) => Place::Character,
            Within::String { key: true, .. } => Place::Key,
            Within::String { key: false, .. } => Place::Text,
            _ if byte.is_ascii_whitespace() => Place::Space,
            Within::Number => Place::Number,
            Within::Between if byte == b'-' || byte.is_ascii_digit() => Place::Number,
            Within::Between => Place::Structure,
        }
    }
}

/// Reads a prefix of a JSON text.
fn scan(text: &[u8]) -> Within {
    let mut within = Within::Between;
    // Whether each open bracket is a brace, and whether a key comes next in it.
    let mut open: Vec<bool> = Vec::new();
    let mut key_comes = false;
    for &byte in text {
        within = match (within, byte) {
            (
                Within::String {
                    escape: Escape::None, ..
                },
                b'"',
            ) => Within::Between,
            (Within::String { key, escape }, byte) => Within::String {
                key,
                escape: escape.after(byte),
            },
            (_, b'"') => Within::String {
                key: key_comes,
                escape: Escape::None,
            },
            (Within::Number, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') => Within::Number,
            (_, b'-' | b'0'..=b'9') => Within::Number,
            _ => Within::Between,
        };
        if matches!(within, Within::String { .. }) {
            continue;
        }
        match byte {
            b'{' | b'[' => open.push(byte == b'{'),
            b'}' | b']' => drop(open.pop()),
            _ => {}
        }
        key_comes = match byte {
            b'{' | b',' => open.last() == Some(&true),
            b' ' | b'\n' | b'\r' | b'\t' => key_comes,
            _ => false,
        };
    }
    within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_by_the_text_before() {
        let place = |before: &str, byte: u8| Place::of(before.as_bytes(), Some(byte));
        assert_eq!(Place::of(b"{}", None), Place::End);
        assert_eq!(place("", b'{'), Place::Structure);
        assert_eq!(place("{", b' '), Place::Space);
        assert_eq!(place("{ \"a", b'b'), Place::Key);
        assert_eq!(place("{\"a\": \"a", b'b'), Place::Text);
        assert_eq!(place("{\"a\": [\"x\", \"a", b'b'), Place::Text);
        assert_eq!(place("{\"a\": [\"x\"], \"a", b'b'), Place::Key);
        assert_eq!(place("{\"a\": {}, \"a", b'b'), Place::Key);
        assert_eq!(place("\"a", b'\\'), Place::Escape);
        assert_eq!(place("\"a\\", b'n'), Place::Escape);
        assert_eq!(place("\"\\\\", b'n'), Place::Text);
        assert_eq!(place("\"\\u", b'C'), Place::Escape);
        assert_eq!(place("\"\\u123", b'4'), Place::Escape);
        assert_eq!(place("\"\\u1234", b'5'), Place::Text);
        assert_eq!(place("\"\u{e9}", 0x80), Place::Character);
        assert_eq!(place("[1", b'.'), Place::Number);
        assert_eq!(place("[1e", b'5'), Place::Number);
        assert_eq!(place("[true", b','), Place::Structure);
        assert_eq!(place("[", b'-'), Place::Number);
        assert_eq!(place("[1,", b'"'), Place::Structure);
    }
}
