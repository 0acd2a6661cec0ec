//! The error envelope.

use serde::Serialize;

/// The whole body of an answer that is not a success.
#[derive(Debug, Serialize)]
pub struct Envelope<'a> {
    /// The error.
    pub error: Body<'a>,
}

/// The four keys that clients read, and our diagnostics beside them.
#[derive(Debug, Serialize)]
pub struct Body<'a> {
    /// What is wrong, for people.
    pub message: &'a str,
    /// The class of the error.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The field that is to blame.
    pub param: Option<&'a str>,
    /// What is wrong, for programs.
    pub code: &'a str,
    /// What only this server tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexiform: Option<Extension<'a>>,
}

/// Details that other servers do not give.
#[derive(Debug, Serialize)]
pub struct Extension<'a> {
    /// The problems of a constraint.
    pub diagnostics: &'a [Diagnostic],
}

/// One problem of a constraint.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnostic {
    /// The field that holds the constraint, where the request was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// Where: a JSON pointer into a schema, or a line and column of a text.
    pub path: String,
    /// The keyword at that place.
    pub keyword: Option<String>,
    /// How bad: always `error` where the request was refused.
    pub severity: &'static str,
    /// The kind of problem.
    pub kind: &'static str,
    /// What is wrong.
    pub message: String,
}
