//! A cursor over a pattern: its characters, the current place, and how many ranges its classes may still
//! have.
//!
//! The parsers of ECMA-262 and of Python use it.

use crate::regex::error::RegexError;
use lexiform_automata::error::ProblemKind;

/// The most ranges that all classes may have together: a property such as `\p{L}` has hundreds in six bytes.
const RANGES: usize = 1_000_000;

/// The characters of a pattern, and how far they have been read.
pub(super) struct Cursor {
    pub(super) chars: Vec<char>,
    /// The index of the next character.
    pub(super) at: usize,
    /// The number of character ranges that further classes may have, all together.
    pub(super) ranges: usize,
}

impl Cursor {
    /// Returns a cursor at the beginning of a pattern.
    pub(super) fn new(pattern: &str) -> Cursor {
        Cursor {
            chars: pattern.chars().collect(),
            at: 0,
            ranges: RANGES,
        }
    }

    /// Returns the next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Returns the character `ahead` places after the next one.
    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Reads this character if it comes next, and returns whether it did.
    pub(super) fn eat(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        self.at += usize::from(there);
        there
    }

    /// Reads this text if it comes next, and returns whether it did.
    pub(super) fn eat_str(&mut self, text: &str) -> bool {
        let there = text.chars().enumerate().all(|(i, c)| self.peek_at(i) == Some(c));
        if there {
            self.at += text.chars().count();
        }
        there
    }

    /// Returns an error at the current place.
    pub(super) fn error(&self, message: impl Into<String>) -> RegexError {
        RegexError::syntax(self.at + 1, message)
    }
}

impl Cursor {
    /// Counts the ranges of one more class.
    pub(super) fn spend_ranges(&mut self, count: usize) -> Result<(), RegexError> {
        self.ranges = self.ranges.checked_sub(count).ok_or_else(|| {
            let message = "the character classes of the pattern have more than a million ranges";
            RegexError::at(ProblemKind::Limit, self.at + 1, message)
        })?;
        Ok(())
    }

    /// Reads a decimal number at `at`, and moves `at` to its end; numbers that are too large saturate.
    pub(super) fn number(&self, at: &mut usize) -> Option<u64> {
        let start = *at;
        let mut value = 0_u64;
        while let Some(digit) = self.chars.get(*at).and_then(|c| c.to_digit(10)) {
            value = value.saturating_mul(10).saturating_add(u64::from(digit));
            *at += 1;
        }
        (*at > start).then_some(value)
    }

    /// Converts the counts of a repetition to the integers of a repetition, if they are small enough.
    pub(super) fn checked_counts(
        &self,
        min: u64,
        max: Option<u64>,
    ) -> Result<(u32, Option<u32>), RegexError> {
        if max.is_some_and(|max| max < min) {
            return Err(self.error("the minimum of a repetition is greater than its maximum"));
        }
        let small = |count: u64| {
            let narrow = u32::try_from(count).ok().filter(|&count| count < u32::MAX);
            narrow.ok_or_else(|| {
                let message = format!("the repetition count {count} is too large");
                RegexError::at(ProblemKind::Limit, self.at + 1, message)
            })
        };
        Ok((small(min)?, max.map(small).transpose()?))
    }

    /// Reads `count` hexadecimal digits; `start` is where the escape begins.
    pub(super) fn hex_escape(&mut self, count: usize, start: usize) -> Result<u32, RegexError> {
        let digits = (0..count).map(|i| self.peek_at(i).and_then(|c| c.to_digit(16)));
        let value = digits
            .into_iter()
            .try_fold(0, |value, digit| digit.map(|digit| value * 16 + digit));
        self.at += count;
        value.ok_or_else(|| {
            RegexError::syntax(start + 1, format!("the escape needs {count} hexadecimal digits"))
        })
    }
}
