//! The end of a JSON value in a text that arrives in pieces.

/// The state of a reader within a JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Json {
    depth: u32,
    quoted: bool,
    escaped: bool,
}

impl Json {
    /// Returns how many bytes of `text` still belong to the value, and whether it ended: at a bracket that it
    /// did not open, or at a mark or a fence, which cannot occur in JSON. White space is part of the value
    /// only once more of the value follows.
    pub(super) fn read(&mut self, text: &str) -> (usize, bool) {
        for (at, byte) in text.bytes().enumerate() {
            match (self.quoted, byte) {
                (true, _) if self.escaped => self.escaped = false,
                (true, b'\\') => self.escaped = true,
                (_, b'"') => self.quoted = !self.quoted,
                (false, b'{' | b'[') => self.depth += 1,
                (false, b'}' | b']' | b'<' | b'`') if self.depth == 0 => {
                    return (json_end(&text[..at]), true);
                }
                (false, b'}' | b']') => self.depth -= 1,
                _ => {}
            }
        }
        match self.depth == 0 && !self.quoted {
            true => (json_end(text), false),
            false => (text.len(), false),
        }
    }
}

/// Returns the length of a text without its trailing white space.
fn json_end(text: &str) -> usize {
    text.trim_end_matches(WHITE_SPACE).len()
}

/// The white space that may surround a JSON value.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
