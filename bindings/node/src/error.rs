//! Errors of the library as errors of Node, whose message is JSON: a list of problems with their places.

use lexiform::SessionError;
use lexiform::error::{CompileError, Exhausted, Place, Problem};
use lexiform::project::Rejected;
use lexiform::repair::RepairError;
use napi::{Error, Status};
use serde_json::{Value, json};

/// Returns the error of a source that does not compile, with all problems.
pub(crate) fn compile_error(error: &CompileError) -> Error {
    of_problems(error.problems.iter().map(problem).collect())
}

/// Returns the error of a call whose arguments are wrong.
pub(crate) fn call_error(message: impl Into<String>) -> Error {
    of_kind("call", message.into())
}

/// Returns the error of work that took longer than its caller allowed.
pub(crate) fn cancelled(message: impl Into<String>) -> Error {
    of_kind("cancelled", message.into())
}

/// Returns the error of a query that would cost more than the limits of its grammar allow.
pub(crate) fn limit_error(exhausted: Exhausted) -> Error {
    of_kind("limit", exhausted.to_string())
}

/// Returns the error of a panic, which is a mistake of this library.
pub(crate) fn internal_error() -> Error {
    of_kind("internal", "a mistake of this library ended the call".to_owned())
}

/// Returns the error of a state that was passed to a grammar that it does not belong to.
pub(crate) fn state_error() -> Error {
    call_error("the state belongs to another grammar")
}

/// Returns the error of a failed operation of a session.
pub(crate) fn session_error(error: SessionError) -> Error {
    match error {
        SessionError::Exhausted(exhausted) => limit_error(exhausted),
        error => call_error(error.to_string()),
    }
}

/// Returns the error of an answer that stands for no value of its schema; the message is one for the model.
pub(crate) fn rejected_error(rejected: &Rejected) -> Error {
    of_kind("invalid", rejected.message_for_model())
}

/// Returns the error of a text that has no repair within reach.
pub(crate) fn repair_error(error: &RepairError) -> Error {
    let kind = match error {
        RepairError::NoText => "unsatisfiable",
        RepairError::Cost { .. } => "call",
        RepairError::Cancelled => "cancelled",
        _ => "limit",
    };
    of_kind(kind, error.to_string())
}

/// Returns a problem or a finding for JavaScript.
pub(crate) fn problem(problem: &Problem) -> Value {
    let mut told = json!({
        "kind": problem.kind.name(), "message": problem.message, "place": problem.place.to_string(),
        "pointer": null, "line": null, "column": null,
    });
    match &problem.place {
        Place::Pointer(pointer) => told["pointer"] = json!(pointer),
        Place::LineColumn { line, column } => {
            told["line"] = json!(line);
            told["column"] = json!(column);
        }
        Place::Whole | Place::Rule(_) => {}
    }
    told
}

fn of_kind(kind: &str, message: String) -> Error {
    of_problems(vec![json!({
        "kind": kind, "message": message, "place": null, "pointer": null, "line": null, "column": null,
    })])
}

fn of_problems(problems: Vec<Value>) -> Error {
    Error::new(Status::GenericFailure, json!({"problems": problems}).to_string())
}
