//! The problems of a source while it is read, by offset.

use lexiform_automata::error::{CompileError, Places, Problem, ProblemKind};

/// A collection of problems with the offsets at which they are.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<(usize, ProblemKind, String)>,
}

impl Problems {
    /// Adds a problem.
    pub(crate) fn add(&mut self, kind: ProblemKind, offset: usize, message: impl Into<String>) {
        self.found.push((offset, kind, message.into()));
    }

    /// Adds an error of syntax.
    pub(crate) fn syntax(&mut self, offset: usize, message: impl Into<String>) {
        self.add(ProblemKind::Syntax, offset, message);
    }

    /// Adds a construct that is known and not supported.
    pub(crate) fn unsupported(&mut self, offset: usize, message: impl Into<String>) {
        self.add(ProblemKind::Unsupported, offset, message);
    }

    /// Returns `true` if there is no problem.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the problems in the order of the text, or nothing if there are none.
    ///
    /// # Errors
    /// Returns all problems with their lines and columns.
    pub(crate) fn placed(mut self, text: &str) -> Result<(), CompileError> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|&(offset, ..)| offset);
        self.found.dedup();
        let mut places = Places::new(text);
        let placed = self.found.into_iter().map(|(offset, kind, message)| {
            let place = places.to(offset);
            Problem::new(kind, place, message)
        });
        Err(CompileError {
            problems: placed.collect(),
        })
    }
}
