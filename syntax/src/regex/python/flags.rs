//! The flags of Python's patterns, and the groups that set them.

use super::{Parenthesis, Parser};
use crate::regex::error::RegexError;

/// The flags of a pattern that change what it matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// `i`: letters match in either case.
    pub(crate) ignore_case: bool,
    /// `m`: `^` and `$` match at line feeds, too.
    pub(crate) multi_line: bool,
    /// `s`: `.` matches line feeds, too.
    pub(crate) dot_all: bool,
    /// `x`: white space and comments in the pattern mean nothing.
    pub(crate) verbose: bool,
}

impl Flags {
    /// Sets the flag with this letter; returns `false` for letters that do not change what is matched here.
    pub(crate) fn set(&mut self, letter: char, on: bool) -> bool {
        let flag = match letter {
            'i' => &mut self.ignore_case,
            'm' => &mut self.multi_line,
            's' => &mut self.dot_all,
            'x' => &mut self.verbose,
            _ => return false,
        };
        *flag = on;
        true
    }
}

impl Parser {
    /// Reads the flags of a group, up to the `:` or `)` after them.
    pub(super) fn flags_of_group(&mut self, start: usize) -> Result<Parenthesis, RegexError> {
        let at_start = start == 0;
        let (mut flags, mut on) = (self.flags, true);
        self.text.at += 1;
        loop {
            match self.text.peek() {
                Some(')') if at_start => return Ok(Parenthesis::Flagged(flags)),
                Some(')') => {
                    let message = "flags for the whole pattern stand at its beginning";
                    return Err(RegexError::syntax(start + 1, message));
                }
                Some(':') => return Ok(Parenthesis::Flagged(flags)),
                Some('-') if on => on = false,
                // Patterns are Unicode in any case.
                Some('u') if on => {}
                Some(letter @ ('a' | 'L')) => {
                    let message = format!("the flag `{letter}` is not supported");
                    return Err(RegexError::unsupported(self.text.at + 1, message));
                }
                Some(letter) if flags.set(letter, on) => {}
                _ => return Err(RegexError::syntax(start + 1, "unknown kind of group")),
            }
            self.text.at += 1;
        }
    }

    /// Skips white space and comments where the flag `x` says that they mean nothing.
    pub(super) fn skip_layout(&mut self) {
        if !self.flags.verbose {
            return;
        }
        while let Some(c) = self.text.peek() {
            match c {
                ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' => self.text.at += 1,
                '#' => {
                    let rest = &self.text.chars[self.text.at..];
                    let length = rest.iter().position(|&c| c == '\n');
                    self.text.at += length.unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }
}
