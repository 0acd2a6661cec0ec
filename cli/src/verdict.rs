//! Judges whether a text belongs to a language, and if not, finds where it leaves it.

pub mod expected;
pub mod pointer;
pub mod twice;
pub mod value;

use std::borrow::Cow;

use lexiform::error::{Exhausted, Place};
use lexiform::{Grammar, State};
use serde_json::{Value, json};

use crate::shown::excerpt::excerpt;
use expected::Expected;
use twice::Twice;

/// The verdict on a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The text belongs.
    Belongs,
    /// The byte at this place may not come next.
    Leaves {
        /// The offset of the byte.
        offset: usize,
        /// The bytes that may come.
        expected: Expected,
    },
    /// The text is the beginning of a valid one, but not whole.
    EndsEarly {
        /// The bytes that may come.
        expected: Expected,
    },
    /// An object has a key twice, in two spellings.
    Twice(Twice),
    /// The grammar is too ambiguous to decide.
    Undecided {
        /// The offset in the text.
        offset: usize,
        /// The limit that was reached.
        limit: Exhausted,
    },
}

/// Judges a whole text. The texts of a schema are JSON, in which keys are compared by their decoded values.
pub fn judge(grammar: &Grammar, text: &[u8], is_json: bool) -> Verdict {
    let state = match after(grammar, text) {
        Ok(state) => state,
        Err(verdict) => return verdict,
    };
    if !grammar.is_accepting(state) {
        return Verdict::EndsEarly {
            expected: Expected::after(grammar, state),
        };
    }
    let twice = is_json.then(|| twice::find(text)).flatten();
    twice.map_or(Verdict::Belongs, Verdict::Twice)
}

/// Returns the state after a text, if it is the beginning of one of the language.
///
/// # Errors
/// The verdict with the place where the text leaves the language.
pub fn after(grammar: &Grammar, text: &[u8]) -> Result<State, Verdict> {
    let mut state = grammar.start();
    for (offset, byte) in text.iter().enumerate() {
        state = match grammar.try_step_bytes(state, &[*byte]) {
            Ok(Some(next)) => next,
            Ok(None) => {
                let expected = Expected::after(grammar, state);
                return Err(Verdict::Leaves { offset, expected });
            }
            Err(limit) => return Err(Verdict::Undecided { offset, limit }),
        };
    }
    Ok(state)
}

impl Verdict {
    /// Returns `true` if the text belongs.
    pub fn belongs(&self) -> bool {
        *self == Self::Belongs
    }

    /// Returns the offset of the first wrong byte, if there is one.
    pub fn offset(&self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Belongs => None,
            Self::Leaves { offset, .. } | Self::Undecided { offset, .. } => Some(*offset),
            Self::Twice(Twice { offset, .. }) => Some(*offset),
            Self::EndsEarly { .. } => Some(text.len()),
        }
    }

    /// Returns the reason, in words that follow "does not belong: "; empty for a text that belongs.
    pub fn reason(&self, text: &[u8]) -> String {
        let place = |offset: usize| {
            let shown = Shown::of(text, offset);
            format!("byte {offset} ({})", Place::in_text(&shown.text, shown.offset))
        };
        match self {
            Self::Belongs => String::new(),
            Self::Leaves { offset, expected } => {
                let (place, expected) = (place(*offset), expected.in_words());
                let found = Shown::of(text, *offset).found();
                format!("at {place} there is {found:?}, expected {expected}")
            }
            Self::Twice(Twice { key, offset }) => {
                format!("at {} the key {key:?} comes again", place(*offset))
            }
            Self::EndsEarly { expected } => {
                let (place, expected) = (place(text.len()), expected.in_words());
                format!("it ends too early, at {place}, expected {expected}")
            }
            Self::Undecided { offset, limit } => format!("undecided at {}: {limit}", place(*offset)),
        }
    }

    /// Returns the wrong line of the text, with a caret; empty for a text that belongs.
    pub fn excerpt(&self, text: &[u8]) -> String {
        let Some(offset) = self.offset(text) else {
            return String::new();
        };
        let shown = Shown::of(text, offset);
        let Place::LineColumn { line, .. } = Place::in_text(&shown.text, shown.offset) else {
            return String::new();
        };
        let length = match self {
            Self::Twice(_) => twice::end_of_string(text, offset) - offset,
            Self::EndsEarly { .. } => 0,
            _ => shown.found().len_utf8(),
        };
        excerpt(&shown.text, shown.offset..shown.offset + length, line)
    }

    /// Returns the reason for programs; null for a text that belongs.
    pub fn json(&self, text: &[u8]) -> Value {
        let Some(offset) = self.offset(text) else {
            return Value::Null;
        };
        let (kind, expected) = match self {
            Self::Belongs | Self::Leaves { .. } => ("unexpected", self.expected()),
            Self::Twice(_) => ("duplicate_key", None),
            Self::EndsEarly { .. } => ("ends_early", self.expected()),
            Self::Undecided { .. } => ("undecided", None),
        };
        let shown = Shown::of(text, offset);
        let (line, column) = match Place::in_text(&shown.text, shown.offset) {
            Place::LineColumn { line, column } => (line, column),
            _ => (1, 1),
        };
        json!({"kind": kind, "byte": offset, "line": line, "column": column, "expected": expected, "message": self.reason(text)})
    }

    fn expected(&self) -> Option<String> {
        match self {
            Self::Leaves { expected, .. } | Self::EndsEarly { expected } => Some(expected.in_words()),
            _ => None,
        }
    }
}

/// Bytes as a printable text, and an offset in it.
struct Shown<'t> {
    text: Cow<'t, str>,
    offset: usize,
}

impl<'t> Shown<'t> {
    /// Creates the printable text. An offset within a character becomes the offset of the character. Invalid
    /// UTF-8 is replaced, separately on each side of the offset.
    fn of(bytes: &'t [u8], offset: usize) -> Self {
        if let Ok(text) = std::str::from_utf8(bytes) {
            let mut offset = offset.min(text.len());
            while !text.is_char_boundary(offset) {
                offset -= 1;
            }
            let text = Cow::Borrowed(text);
            return Self { text, offset };
        }
        let (before, after) = bytes.split_at(offset.min(bytes.len()));
        let before = String::from_utf8_lossy(before).into_owned();
        Self {
            offset: before.len(),
            text: Cow::Owned(before + &String::from_utf8_lossy(after)),
        }
    }

    /// Returns the character at the offset.
    fn found(&self) -> char {
        self.text[self.offset..].chars().next().unwrap_or(' ')
    }
}
