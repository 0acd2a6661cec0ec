//! Verdicts on given texts: whether a text belongs to a language, and if not, where it leaves it and what was
//! expected there.
//!
//! ```text
//!   text ─► judge ────────► Verdict ─► reason, offset, pointer of the value
//!        └► judge_value ──► Verdict of the JSON value, whatever the white space of its text
//! ```
//!
//! A text is judged byte by byte on the machine of its grammar. Here nothing is changed; the nearest valid
//! text is found by [`repair`](crate::repair).

mod compacted;
mod expected;
mod pointer;
mod spelling;
mod twice;

use std::borrow::Cow;

use lexiform_automata::error::{Exhausted, Place};
use lexiform_automata::matcher::{Grammar, State};

use compacted::Compacted;
pub use expected::Expected;
pub use pointer::pointer;
pub use spelling::Unwritten;
pub use twice::{Twice, end_of_string, find_twice};

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
///
/// ```
/// # use std::sync::Arc;
/// # use lexiform::{Options, Source, compile};
/// # use lexiform::verdict::judge;
/// # use lexiform::vocab::{TokenKind, Vocabulary};
/// # let vocabulary = Arc::new(Vocabulary::new(&[(TokenKind::Text, "<eos>")], &[0])?);
/// let (grammar, _) = compile(Source::Regex("yes|no"), &vocabulary, &Options::default())?;
/// let verdict = judge(&grammar, b"yet", false);
/// assert_eq!(verdict.offset(b"yet"), Some(2));
/// assert_eq!(verdict.reason(b"yet"), "at byte 2 (line 1, column 3) there is 't', expected \"s\"");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    let twice = is_json.then(|| find_twice(text)).flatten();
    twice.map_or(Verdict::Belongs, Verdict::Twice)
}

/// Judges the value of a JSON text, whatever its white space. The offsets of the verdict are those of the
/// given text.
pub fn judge_value(grammar: &Grammar, text: &[u8]) -> Verdict {
    let compacted = Compacted::new(text);
    let mut verdict = judge(grammar, &compacted.text, true);
    match &mut verdict {
        Verdict::Leaves { offset, .. }
        | Verdict::Undecided { offset, .. }
        | Verdict::Twice(Twice { offset, .. }) => *offset = compacted.given(*offset),
        Verdict::Belongs | Verdict::EndsEarly { .. } => {}
    }
    verdict
}

/// Returns the state after a text, if it is the beginning of one of the language.
///
/// # Errors
/// Returns the verdict with the place where the text leaves the language.
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

    /// Returns the name of the verdict in JSON; `None` for a text that belongs.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Belongs => None,
            Self::Leaves { .. } => Some("unexpected"),
            Self::Twice(_) => Some("duplicate_key"),
            Self::EndsEarly { .. } => Some("ends_early"),
            Self::Undecided { .. } => Some("undecided"),
        }
    }

    /// Returns what was expected at the place of the problem, where that is known.
    pub fn expected(&self) -> Option<&Expected> {
        match self {
            Self::Leaves { expected, .. } | Self::EndsEarly { expected } => Some(expected),
            _ => None,
        }
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
        let place = |offset: usize| format!("byte {offset} ({})", Shown::of(text, offset).place());
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
}

/// A printable form of bytes, and an offset in it.
pub struct Shown<'t> {
    /// The bytes as text.
    pub text: Cow<'t, str>,
    /// The offset in the text.
    pub offset: usize,
}

impl<'t> Shown<'t> {
    /// Creates the printable text. An offset within a character becomes the offset of the character. Invalid
    /// UTF-8 is replaced, separately on each side of the offset.
    pub fn of(bytes: &'t [u8], offset: usize) -> Self {
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

    /// Returns the character at the offset; a space at the end.
    pub fn found(&self) -> char {
        self.text[self.offset..].chars().next().unwrap_or(' ')
    }

    /// Returns the line and column of the offset.
    pub fn place(&self) -> Place {
        Place::in_text(&self.text, self.offset)
    }
}
