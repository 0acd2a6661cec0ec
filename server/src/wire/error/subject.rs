//! The problems of a constraint in the terms of the API: the code, the message, the diagnostics.

use lexiform::error::{Place, Problem, ProblemKind};

use super::shorten::shortened;
use crate::wire::error::envelope::Diagnostic;

/// The constraint that an error is about, as the error describes it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The field that the constraint came from, as a path: `response_format.json_schema.schema`.
    pub param: &'a str,
    /// The client's name for the constraint, if the field has one.
    pub name: Option<&'a str>,
    /// `true` if it is a JSON Schema.
    pub is_schema: bool,
}

impl Subject<'_> {
    pub(super) fn code(&self, kind: ProblemKind) -> &'static str {
        match kind {
            ProblemKind::Unsupported | ProblemKind::Narrowed if self.is_schema => "unsupported_keyword",
            ProblemKind::Unsatisfiable => "unsatisfiable_schema",
            ProblemKind::Limit => "grammar_too_complex",
            ProblemKind::Cancelled => "grammar_compile_timeout",
            ProblemKind::Busy => "compile_memory_exhausted",
            _ if self.is_schema => "invalid_json_schema",
            _ => "invalid_grammar",
        }
    }

    pub(super) fn message(&self, problem: &Problem) -> String {
        let text = shortened(&problem.message).into_owned();
        match (&problem.place, self.is_schema) {
            (Place::Pointer(pointer), true) => {
                let name = shortened(self.name.unwrap_or("schema")).into_owned();
                let field = self.param.split('.').next().unwrap_or(self.param);
                format!(
                    "Invalid schema for {field} '{name}': In context={}, {text}",
                    context(pointer)
                )
            }
            (place, _) => format!("Invalid constraint in {}: {place}: {text}", self.param),
        }
    }
}

/// Formats a JSON pointer as in OpenAI's messages: `('properties', 'a')`.
fn context(pointer: &str) -> String {
    let parts: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|part| format!("'{}'", part.replace("~1", "/").replace("~0", "~")))
        .collect();
    match parts.as_slice() {
        [one] => shortened(&format!("({one},)")).into_owned(),
        _ => shortened(&format!("({})", parts.join(", "))).into_owned(),
    }
}

/// Converts a problem of this severity to a diagnostic.
pub(super) fn diagnostic(problem: &Problem, severity: &'static str) -> Diagnostic {
    let path = match &problem.place {
        Place::Pointer(pointer) => pointer.clone(),
        place => place.to_string(),
    };
    let keyword = match &problem.place {
        Place::Pointer(pointer) => pointer.rsplit('/').next().map(str::to_owned),
        _ => None,
    };
    Diagnostic {
        param: None,
        path: shortened(&path).into_owned(),
        keyword: keyword.filter(|word| !word.is_empty()),
        severity,
        kind: problem.kind.name(),
        message: shortened(&problem.message).into_owned(),
    }
}

/// A problem or a finding in the form that clients receive.
pub struct Diagnosis(Diagnostic);

impl Diagnosis {
    /// Creates the diagnosis of a problem that stops a compilation.
    pub fn error(problem: &Problem) -> Self {
        Self(diagnostic(problem, "error"))
    }

    /// Creates the diagnosis of a finding that does not stop a compilation.
    pub fn warning(problem: &Problem) -> Self {
        Self(diagnostic(problem, "warning"))
    }

    /// Returns the diagnosis as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}
