//! Converts the library's errors to Python exceptions.

use lexiform::error::{CompileError, Exhausted};
use lexiform::project::Rejected;
use lexiform::repair::RepairError;
use lexiform::vocab::VocabularyError;
use lexiform::{SessionError, TreeError};
use lexiform_automata::error;
use lexiform_automata::error::Place;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The exceptions, which are written in Python.
mod raised {
    pyo3::import_exception!(lexiform.errors, CompileError);
    pyo3::import_exception!(lexiform.errors, LimitError);
    pyo3::import_exception!(lexiform.errors, RejectedError);
    pyo3::import_exception!(lexiform.errors, RepairError);
    pyo3::import_exception!(lexiform.errors, StateError);
}

/// One problem of a source, with its place.
#[pyclass(frozen, get_all, eq, module = "lexiform")]
#[derive(Clone, PartialEq)]
pub(crate) struct Problem {
    /// The kind of problem: "syntax", "invalid", "unsupported", "narrowed", "reference", "unsatisfiable",
    /// "limit", "cancelled" or "busy".
    kind: &'static str,
    /// The place of the problem, as a text: "#/properties/age", "line 1, column 2", "rule item" or "source".
    place: String,
    /// A description of the problem.
    message: String,
    /// The JSON pointer of the place, if it is one.
    pointer: Option<String>,
    /// The line of the place, from 1, if it is in a text.
    line: Option<usize>,
    /// The column of the place in characters, from 1, if it is in a text.
    column: Option<usize>,
}

#[pymethods]
impl Problem {
    fn __str__(&self) -> String {
        format!("{}: {}", self.place, self.message)
    }

    fn __repr__(&self) -> String {
        format!("Problem({:?}, {:?}, {:?})", self.kind, self.place, self.message)
    }
}

impl From<&error::Problem> for Problem {
    fn from(problem: &error::Problem) -> Problem {
        let (mut pointer, mut line_column) = (None, None);
        match &problem.place {
            Place::Pointer(text) => pointer = Some(text.clone()),
            Place::LineColumn { line, column } => line_column = Some((*line, *column)),
            Place::Whole | Place::Rule(_) => {}
        }
        Problem {
            kind: problem.kind.name(),
            place: problem.place.to_string(),
            message: problem.message.clone(),
            pointer,
            line: line_column.map(|(line, _)| line),
            column: line_column.map(|(_, column)| column),
        }
    }
}

/// Returns a `lexiform.CompileError` with all problems.
pub(crate) fn compile_error(error: &CompileError) -> PyErr {
    let problems: Vec<Problem> = error.problems.iter().map(Problem::from).collect();
    raised::CompileError::new_err((problems,))
}

/// Returns a `lexiform.RejectedError` for an answer that stands for no value of a schema.
pub(crate) fn rejected_error(rejected: &Rejected) -> PyErr {
    raised::RejectedError::new_err((rejected.to_string(), rejected.message_for_model()))
}

/// Returns a `lexiform.LimitError` for a request that the grammar cannot answer within its limits.
pub(crate) fn limit_error(exhausted: Exhausted) -> PyErr {
    raised::LimitError::new_err((exhausted.limit, exhausted.allowed, exhausted.to_string()))
}

/// Returns a `lexiform.RepairError` for a text that has no repair within reach, with the cost below which
/// there is none, and the limit; a `lexiform.LimitError` or a `ValueError` for errors unrelated to the text.
pub(crate) fn repair_error(error: &RepairError) -> PyErr {
    let message = error.to_string();
    match error {
        RepairError::TooFar { cost, limit } => {
            raised::RepairError::new_err((message, Some(*cost), Some(*limit)))
        }
        RepairError::NoText => raised::RepairError::new_err((message, None::<u64>, None::<usize>)),
        RepairError::Exhausted(exhausted) => limit_error(*exhausted),
        _ => PyValueError::new_err(message),
    }
}

/// Returns a `lexiform.StateError` for a state that was passed to a grammar it does not belong to.
pub(crate) fn state_error() -> PyErr {
    raised::StateError::new_err("the state belongs to another grammar")
}

/// Returns a `ValueError` for an invalid vocabulary.
pub(crate) fn vocabulary_error(error: VocabularyError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns a `ValueError` for arrays that form no tree.
pub(crate) fn tree_error(error: TreeError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns a `ValueError`, or a `lexiform.LimitError`, for a failed operation of a session.
pub(crate) fn session_error(error: SessionError) -> PyErr {
    match error {
        SessionError::Exhausted(exhausted) => limit_error(exhausted),
        error => PyValueError::new_err(error.to_string()),
    }
}
