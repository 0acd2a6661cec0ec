//! A pattern as it is read: its characters, the place of the next one, and what classes may still hold.

use crate::regex::error::RegexError;

/// The most ranges that all classes have together: a property such as `\p{L}` has hundreds in six bytes.
const RANGES: usize = 1_000_000;

/// The characters of a pattern, and how far they are read.
pub(super) struct Cursor {
    pub(super) chars: Vec<char>,
    /// The place of the next character.
    pub(super) at: usize,
    /// How many ranges of characters the classes may still have, all together.
    pub(super) ranges: usize,
}

impl Cursor {
    /// A pattern of which nothing is read.
    pub(super) fn new(pattern: &str) -> Cursor {
        Cursor {
            chars: pattern.chars().collect(),
            at: 0,
            ranges: RANGES,
        }
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// The character so many places ahead.
    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Reads on over this character, if it comes next.
    pub(super) fn eat(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        self.at += usize::from(there);
        there
    }

    /// Reads on over this text, if it comes next.
    pub(super) fn eat_str(&mut self, text: &str) -> bool {
        let there = text.chars().enumerate().all(|(i, c)| self.peek_at(i) == Some(c));
        if there {
            self.at += text.chars().count();
        }
        there
    }

    /// An error at the current place.
    pub(super) fn error(&self, message: impl Into<String>) -> RegexError {
        RegexError::syntax(self.at + 1, message)
    }
}
