//! What can be wrong with a source, and where.
//!
//! A compile error holds *all* problems of a source, each with its place, so that a caller can mend them at
//! once. Diagnostics are the findings that do not stop a compile: an unknown format, a keyword without
//! effect.

use std::fmt;

/// Where in a source something is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The source as a whole.
    Whole,
    /// A JSON pointer (RFC 6901) into a schema; the empty string is its root.
    Pointer(String),
    /// A position in a text, both counted from 1; columns count characters.
    LineColumn {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// A named rule of a grammar, for problems found after the front end.
    Rule(String),
}

impl Place {
    /// The line and column of a byte offset in `text`; an offset beyond the end is the end.
    pub fn in_text(text: &str, offset: usize) -> Place {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        Place::LineColumn { line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => write!(f, "source"),
            Place::Pointer(pointer) => write!(f, "#{pointer}"),
            Place::LineColumn { line, column } => write!(f, "line {line}, column {column}"),
            Place::Rule(name) => write!(f, "rule {name}"),
        }
    }
}

/// Lines and columns along a text, for offsets that never go back: all places of a text cost one walk through
/// it.
pub struct Places<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
    column: usize,
}

impl<'t> Places<'t> {
    /// At the beginning of a text.
    pub fn new(text: &'t str) -> Places<'t> {
        let (offset, line, column) = (0, 1, 1);
        Places {
            text,
            offset,
            line,
            column,
        }
    }

    /// The place of an offset, as [`Place::in_text`] has it. It must not lie before the one that was asked
    /// for last.
    pub fn to(&mut self, offset: usize) -> Place {
        for c in self.text[self.offset..].chars() {
            if self.offset + c.len_utf8() > offset {
                break;
            }
            self.offset += c.len_utf8();
            (self.line, self.column) = match c {
                '\n' => (self.line + 1, 1),
                _ => (self.line, self.column + 1),
            };
        }
        let (line, column) = (self.line, self.column);
        Place::LineColumn { line, column }
    }
}

/// What kind of problem it is; callers branch on this, people read the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The text is not of its language (not JSON, not a regular expression, not a grammar).
    Syntax,
    /// A value has a form that its keyword does not allow.
    Invalid,
    /// Understood, but not supported by this compiler.
    Unsupported,
    /// Enforced, but some of what the source allows is refused.
    Narrowed,
    /// Some of what the source allows is refused because the options ask for it: an object that it leaves
    /// open is closed.
    Closed,
    /// The target of a reference does not exist, or references form a circle.
    Reference,
    /// No text at all satisfies the source.
    Unsatisfiable,
    /// A limit was reached; the message names it.
    Limit,
    /// The caller called the compile off; nothing is said about the source.
    Cancelled,
    /// The memory that compiles share was held by others; nothing is said about the source, which may compile
    /// later.
    Busy,
}

impl ProblemKind {
    /// The name of the kind in JSON: the variant in small letters.
    pub fn name(self) -> &'static str {
        match self {
            ProblemKind::Syntax => "syntax",
            ProblemKind::Invalid => "invalid",
            ProblemKind::Unsupported => "unsupported",
            ProblemKind::Narrowed => "narrowed",
            ProblemKind::Closed => "closed",
            ProblemKind::Reference => "reference",
            ProblemKind::Unsatisfiable => "unsatisfiable",
            ProblemKind::Limit => "limit",
            ProblemKind::Cancelled => "cancelled",
            ProblemKind::Busy => "busy",
        }
    }
}

/// One problem of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem.
    pub kind: ProblemKind,
    /// Where it is.
    pub place: Place,
    /// What is wrong and what was expected, as a clause without a full stop.
    pub message: String,
}

impl Problem {
    /// The keyword of a schema that the problem is about: the last part of its JSON pointer.
    pub fn keyword(&self) -> Option<&str> {
        match &self.place {
            Place::Pointer(pointer) => pointer.rsplit('/').next().filter(|word| !word.is_empty()),
            _ => None,
        }
    }

    /// A problem at a place.
    pub fn new(kind: ProblemKind, place: Place, message: impl Into<String>) -> Self {
        Problem {
            kind,
            place,
            message: message.into(),
        }
    }

    /// A problem at a JSON pointer.
    pub fn at_pointer(kind: ProblemKind, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Problem::new(kind, Place::Pointer(pointer.into()), message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Why a source does not compile: at least one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// All problems that were found, in the order of the source.
    pub problems: Vec<Problem>,
}

impl CompileError {
    /// An error of a single problem.
    pub fn one(problem: Problem) -> Self {
        CompileError {
            problems: vec![problem],
        }
    }
}

impl From<Problem> for CompileError {
    fn from(problem: Problem) -> Self {
        CompileError::one(problem)
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CompileError {}

/// Why a grammar did not answer a question, such as for a mask: the answer would cost more than a limit
/// allows.
///
/// What the grammar allows there is not known, so that nothing may be allowed: whoever asked for a mask has
/// to end that one sequence. Other states of the grammar, and other grammars, are not affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exhausted {
    /// The name of the limit; see [`Limits`](crate::limits::Limits).
    pub limit: &'static str,
    /// Its value.
    pub allowed: usize,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exhausted { limit, allowed } = self;
        write!(
            f,
            "the grammar is too ambiguous here; the limit `{limit}` is {allowed}"
        )
    }
}

impl std::error::Error for Exhausted {}

/// Findings that do not stop a compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// The findings, in the order of the source.
    pub findings: Vec<Problem>,
}

impl Diagnostics {
    /// Notes a finding.
    pub fn push(&mut self, finding: Problem) {
        self.findings.push(finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_text_count_lines_and_characters_from_one() {
        assert_eq!(
            Place::in_text("aß\nxyz", 0),
            Place::LineColumn { line: 1, column: 1 }
        );
        assert_eq!(
            Place::in_text("aß\nxyz", 5),
            Place::LineColumn { line: 2, column: 2 }
        );
        assert_eq!(Place::in_text("aß", 2), Place::LineColumn { line: 1, column: 2 });
        assert_eq!(Place::in_text("ab", 99), Place::LineColumn { line: 1, column: 3 });
    }

    #[test]
    fn places_in_order_are_the_same_places() {
        let text = "aß\nxyz\n\n→b";
        let mut places = Places::new(text);
        for offset in [0, 0, 1, 2, 3, 4, 4, 7, 8, 9, 10, 12, 13, 99] {
            assert_eq!(places.to(offset), Place::in_text(text, offset), "offset {offset}");
        }
    }
}
