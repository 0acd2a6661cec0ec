//! Compile errors, diagnostics, and their places in a source.
//!
//! A [`CompileError`] holds *all* problems of a source, each with its place, so that a caller can fix them in
//! one go. [`Diagnostics`] are findings that do not stop a compile, such as an unknown format or a keyword
//! without effect.

use std::fmt;

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The source as a whole.
    Whole,
    /// A JSON pointer (RFC 6901) into a schema; the empty string is its root.
    Pointer(String),
    /// A line and column of a text, both counted from 1; columns count characters.
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
    /// Returns the line and column of a byte offset in `text`. An offset beyond the end counts as the end.
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

/// Finds the lines and columns of non-decreasing offsets of a text, so that all of them together cost one
/// pass over the text.
pub struct Places<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
    column: usize,
}

impl<'t> Places<'t> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'t str) -> Places<'t> {
        let (offset, line, column) = (0, 1, 1);
        Places {
            text,
            offset,
            line,
            column,
        }
    }

    /// Returns the place of `offset`, as [`Place::in_text`] does. The offset must not be smaller than that of
    /// the previous call.
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

/// The kind of a problem. Callers branch on it; people read the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The text does not parse as its language (it is not JSON, not a regular expression, not a grammar).
    Syntax,
    /// A value does not have a form that its keyword allows.
    Invalid,
    /// The construct is understood, but this compiler does not support it.
    Unsupported,
    /// The construct is enforced, but some texts that the source allows are rejected.
    Narrowed,
    /// Some texts that the source allows are rejected because an option says so: an object that the source
    /// leaves open is closed.
    Closed,
    /// The target of a reference does not exist, or references form a cycle.
    Reference,
    /// No text satisfies the source.
    Unsatisfiable,
    /// A limit was reached; the message names it.
    Limit,
    /// The caller cancelled the compile. This says nothing about the source.
    Cancelled,
    /// Other compiles held the memory that all of them share. This says nothing about the source, which may
    /// compile later.
    Busy,
}

impl ProblemKind {
    /// Returns the name of the kind in JSON: the variant in lower case.
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

/// A problem of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The place of the problem.
    pub place: Place,
    /// The problem and the expected input, as a clause without a full stop.
    pub message: String,
}

impl Problem {
    /// Returns the schema keyword that caused the problem: the last part of its JSON pointer.
    pub fn keyword(&self) -> Option<&str> {
        match &self.place {
            Place::Pointer(pointer) => pointer.rsplit('/').next().filter(|word| !word.is_empty()),
            _ => None,
        }
    }

    /// Creates a problem at a place.
    pub fn new(kind: ProblemKind, place: Place, message: impl Into<String>) -> Self {
        Problem {
            kind,
            place,
            message: message.into(),
        }
    }

    /// Creates a problem at a JSON pointer.
    pub fn at_pointer(kind: ProblemKind, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Problem::new(kind, Place::Pointer(pointer.into()), message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// The error of a source that does not compile, with at least one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// All problems that were found, in source order.
    pub problems: Vec<Problem>,
}

impl CompileError {
    /// Creates an error with a single problem.
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

/// The error of a query, such as for a mask, whose answer would cost more than a limit allows.
///
/// The grammar then does not know which tokens it allows, so none may be allowed, and a caller that asked for
/// a mask has to end that one sequence. Other states of the grammar, and other grammars, are not affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exhausted {
    /// The name of the limit; see [`Limits`](crate::limits::Limits).
    pub limit: &'static str,
    /// The value of the limit.
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
    /// The findings, in source order.
    pub findings: Vec<Problem>,
}

impl Diagnostics {
    /// Adds a finding.
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
