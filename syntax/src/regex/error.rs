//! Errors of regular expressions, with their columns.

use std::fmt;

use lexiform_automata::error::{Place, Problem, ProblemKind};

/// An error in a regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexError {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The column in characters, counted from 1; `None` if the error concerns the whole expression.
    pub column: Option<usize>,
    /// The error message, a clause without a full stop.
    pub message: String,
}

impl RegexError {
    pub(crate) fn syntax(column: usize, message: impl Into<String>) -> Self {
        Self::at(ProblemKind::Syntax, column, message)
    }

    pub(crate) fn unsupported(column: usize, message: impl Into<String>) -> Self {
        Self::at(ProblemKind::Unsupported, column, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        RegexError {
            kind: ProblemKind::Limit,
            column: None,
            message: message.into(),
        }
    }

    pub(crate) fn at(kind: ProblemKind, column: usize, message: impl Into<String>) -> Self {
        RegexError {
            kind,
            column: Some(column),
            message: message.into(),
        }
    }

    /// Converts the error to a problem of a source that consists of nothing but this expression.
    pub fn into_problem(self) -> Problem {
        let place = match self.column {
            Some(column) => Place::LineColumn { line: 1, column },
            None => Place::Whole,
        };
        Problem::new(self.kind, place, self.message)
    }
}

impl fmt::Display for RegexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(f, "{} at column {column}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for RegexError {}
