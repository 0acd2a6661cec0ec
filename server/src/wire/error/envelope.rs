//! The error envelope.

use serde::Serialize;

/// The whole body of an unsuccessful answer.
#[derive(Debug, Serialize)]
pub struct Envelope<'a> {
    /// The error.
    pub error: Body<'a>,
}

/// The four keys that clients read, with the diagnostics of this server.
#[derive(Debug, Serialize)]
pub struct Body<'a> {
    /// A readable description of the problem.
    pub message: &'a str,
    /// The class of the error.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The field that caused the error.
    pub param: Option<&'a str>,
    /// The machine-readable reason.
    pub code: &'a str,
    /// The fields that are specific to this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexiform: Option<Extension<'a>>,
}

/// The details that other servers do not return.
#[derive(Debug, Serialize)]
pub struct Extension<'a> {
    /// The problems of a constraint.
    pub diagnostics: &'a [Diagnostic],
}

/// One problem of a constraint.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnostic {
    /// The field that contains the constraint, if the request was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// The place of the problem: a JSON pointer into a schema, or a line and column of a text.
    pub path: String,
    /// The keyword at that place.
    pub keyword: Option<String>,
    /// The severity: always `error` if the request was refused.
    pub severity: &'static str,
    /// The kind of problem.
    pub kind: &'static str,
    /// A readable description of the problem.
    pub message: String,
}
