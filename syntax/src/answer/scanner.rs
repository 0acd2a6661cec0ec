//! The tokens of a JSON text that arrives byte by byte.
//!
//! Everything that follows JSON while it is written stands on this scanner: the [values](super::values) and
//! their places, the end of the arguments of a call, and the classes of places where drafts are counted. It
//! relies on a grammar or on a later parse for validity: for text that is not JSON its steps are
//! meaningless, but harmless. It takes constant time for a byte, and one byte of memory for an open bracket.

/// What a byte does in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonStep {
    /// It continues a token, or is white space or a colon.
    Nothing,
    /// It opens an object (`true`) or an array.
    Opens(bool),
    /// It closes the innermost object or array.
    Closes,
    /// It separates two members or items.
    Separates,
    /// It is the opening quote of a key (`true`) or of a string that is a value.
    BeginsString(bool),
    /// It is the closing quote of a key (`true`) or of a string that is a value.
    EndsString(bool),
    /// It begins a number, `true`, `false` or `null`.
    BeginsWord,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScannerAt {
    #[default]
    Between,
    Text {
        escaped: bool,
    },
    Word,
}

/// A reader of JSON tokens.
#[derive(Clone, Debug, Default)]
pub struct JsonScanner {
    /// The open brackets; `true` for an object.
    open: Vec<bool>,
    at: ScannerAt,
    /// `true` if the next string is a key, or the current one is.
    is_key: bool,
}

impl JsonScanner {
    /// Returns the number of open objects and arrays.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Returns `true` inside a string, which may be a key.
    pub fn is_in_string(&self) -> bool {
        matches!(self.at, ScannerAt::Text { .. })
    }

    /// Returns `true` inside a key, and where one comes next.
    pub fn is_at_key(&self) -> bool {
        self.is_key
    }

    /// Returns `true` inside a number, `true`, `false` or `null`.
    pub fn is_in_word(&self) -> bool {
        self.at == ScannerAt::Word
    }

    /// Returns `true` outside of all brackets and strings.
    pub fn is_outside(&self) -> bool {
        self.open.is_empty() && !self.is_in_string()
    }

    /// Reads a byte. Returns what it does, and `true` if a number or a word ended before it.
    pub fn step(&mut self, byte: u8) -> (JsonStep, bool) {
        match self.at {
            ScannerAt::Text { escaped: false } if byte == b'"' => {
                self.at = ScannerAt::Between;
                (JsonStep::EndsString(std::mem::take(&mut self.is_key)), false)
            }
            ScannerAt::Text { escaped } => {
                let escaped = !escaped && byte == b'\\';
                self.at = ScannerAt::Text { escaped };
                (JsonStep::Nothing, false)
            }
            // Text that is not JSON has letters of several bytes, which are not torn apart.
            ScannerAt::Word if byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"+-.".contains(&byte) => {
                (JsonStep::Nothing, false)
            }
            ScannerAt::Word => {
                self.at = ScannerAt::Between;
                (self.between(byte), true)
            }
            ScannerAt::Between => (self.between(byte), false),
        }
    }

    fn between(&mut self, byte: u8) -> JsonStep {
        match byte {
            b'{' | b'[' => {
                self.is_key = byte == b'{';
                self.open.push(self.is_key);
                JsonStep::Opens(self.is_key)
            }
            b'}' | b']' => {
                self.is_key = false;
                self.open.pop();
                JsonStep::Closes
            }
            b',' => {
                self.is_key = self.open.last().copied().unwrap_or(false);
                JsonStep::Separates
            }
            b'"' => {
                self.at = ScannerAt::Text { escaped: false };
                JsonStep::BeginsString(self.is_key)
            }
            b':' => {
                self.is_key = false;
                JsonStep::Nothing
            }
            b' ' | b'\t' | b'\n' | b'\r' => JsonStep::Nothing,
            _ => {
                self.at = ScannerAt::Word;
                JsonStep::BeginsWord
            }
        }
    }

    /// Reads a text of which a JSON value is the beginning. Returns how many bytes of it still belong to the
    /// value, and whether it ended: at a bracket that it did not open, or at a mark or a fence, which cannot
    /// occur in JSON. White space is part of the value only once more of the value follows.
    pub fn read_value(&mut self, text: &str) -> (usize, bool) {
        for (at, byte) in text.bytes().enumerate() {
            if self.is_outside() && matches!(byte, b'}' | b']' | b'<' | b'`') {
                return (without_space(&text[..at]), true);
            }
            self.step(byte);
        }
        match self.is_outside() {
            true => (without_space(text), false),
            false => (text.len(), false),
        }
    }
}

/// Returns the length of a text without its trailing white space.
fn without_space(text: &str) -> usize {
    text.trim_end_matches(WHITE_SPACE).len()
}

/// The white space that may surround a JSON value.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
