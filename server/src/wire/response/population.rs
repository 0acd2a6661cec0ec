//! What is reported about the texts that an answer was drawn from or chosen among.

use serde::Serialize;

/// A text of a population.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParticleText {
    /// The text as it was written, including thoughts and calls of tools; `null` if it could not be
    /// completed.
    pub text: Option<String>,
    /// The log of its weight.
    pub log_weight: f64,
}

/// How far the samples that an answer was chosen among support it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Support {
    /// The number of whole samples, this one included.
    pub samples: usize,
    /// The share of the samples that have the same value.
    pub share: f64,
    /// The mean agreement with the other samples, if it decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// The support of each scalar of a value in JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldSupport>,
}

/// The support of a scalar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldSupport {
    /// The JSON pointer of the scalar. Where tools are called, it begins with `/content` or
    /// `/calls/INDEX/arguments`.
    pub path: String,
    /// The share of the samples that have the same scalar there.
    pub share: f64,
}
