//! What a gateway tells about the schemas that it has rewritten and the answers that it has taken back.

use serde::Serialize;
use serde_json::Value;

/// The fields of an answer that are specific to a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayReport<'a> {
    /// The schemas that were rewritten.
    pub projections: &'a [Projected],
    /// What was changed in the answer, so that it is valid.
    pub changes: &'a [Changed],
    /// How often the upstream was asked.
    pub attempts: usize,
}

/// A schema that was rewritten for the upstream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Projected {
    /// The field of the schema.
    pub param: String,
    /// How the values that the upstream may write relate to those of the schema.
    pub relation: &'static str,
    /// `true` if the relation is proven.
    pub proven: bool,
    /// The constraints that the upstream does not know of.
    pub losses: Vec<Part>,
    /// The parts that the upstream writes in another shape.
    pub recodings: Vec<Part>,
}

/// A part of a schema, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The JSON pointer of the part.
    pub path: String,
    /// What became of it.
    pub message: String,
}

/// A change to a value of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changed {
    /// The field of the answer.
    pub param: String,
    /// The JSON pointer of the value.
    pub path: String,
    /// The kind of change.
    pub kind: &'static str,
}

impl GatewayReport<'_> {
    /// Returns the report as JSON.
    pub fn to_json(&self) -> Value {
        // It has only strings, numbers and lists of them, which can always be written as JSON.
        serde_json::to_value(self).unwrap_or_default()
    }
}
