//! What is wrong with a constraint, in the words of the API: its code, its message, its diagnostics.

use lexiform::error::{Place, Problem, ProblemKind};

use super::shorten::shortened;
use crate::wire::error::envelope::Diagnostic;

/// What a constraint of a request is, for the words of an error about it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The field it came from, as a path: `response_format.json_schema.schema`.
    pub param: &'a str,
    /// The name that the client gave it, where the field has one.
    pub name: Option<&'a str>,
    /// Whether it is a JSON Schema.
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

/// A JSON pointer in the form that OpenAI's messages use: `('properties', 'a')`.
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

/// What clients are told of a problem of this severity.
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

/// A problem or a finding, as clients are told of it.
pub struct Diagnosis(Diagnostic);

impl Diagnosis {
    /// Something that stops a compile.
    pub fn error(problem: &Problem) -> Self {
        Self(diagnostic(problem, "error"))
    }

    /// Something that does not.
    pub fn warning(problem: &Problem) -> Self {
        Self(diagnostic(problem, "warning"))
    }

    /// Its JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}
