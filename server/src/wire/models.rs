//! `GET /v1/models` and the small answers of operations.

use serde::Serialize;

/// The list of models.
#[derive(Debug, Serialize)]
pub struct ModelList<'a> {
    /// Always `list`.
    pub object: &'static str,
    /// The models.
    pub data: Vec<ModelCard<'a>>,
}

/// A model.
#[derive(Debug, Serialize)]
pub struct ModelCard<'a> {
    /// The name of the model in requests.
    pub id: &'a str,
    /// Always `model`.
    pub object: &'static str,
    /// When the model was loaded, in seconds since 1970.
    pub created: u64,
    /// Always `lexiform`.
    pub owned_by: &'static str,
    /// The maximum number of tokens of prompt and output together.
    pub max_model_len: usize,
    /// The format of its weights in memory: `stored` as in the folder, or the format that they were rounded
    /// to, which makes it a different model.
    pub weights: &'static str,
    /// The format in which the model is held to write calls of tools, or `any`.
    pub tool_format: &'static str,
    /// `true` if requests may set `batch_invariant`.
    pub batch_invariant: bool,
}

/// The state of the server.
#[derive(Debug, Serialize)]
pub struct Health {
    /// The state in one word.
    pub status: &'static str,
}

/// The version of the server.
#[derive(Debug, Serialize)]
pub struct Version {
    /// The version of the package.
    pub version: &'static str,
}
