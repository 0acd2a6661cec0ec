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
    /// Its name in requests.
    pub id: &'a str,
    /// Always `model`.
    pub object: &'static str,
    /// When it was loaded, in seconds.
    pub created: u64,
    /// Always `lexiform`.
    pub owned_by: &'static str,
    /// The most tokens of prompt and output together.
    pub max_model_len: usize,
    /// How its weights are kept: `stored` as the folder has them, or rounded to this format, which makes it
    /// another model.
    pub weights: &'static str,
    /// Whether requests may have `batch_invariant`.
    pub batch_invariant: bool,
}

/// The state of the server.
#[derive(Debug, Serialize)]
pub struct Health {
    /// One word.
    pub status: &'static str,
}

/// The version of the server.
#[derive(Debug, Serialize)]
pub struct Version {
    /// Of the package.
    pub version: &'static str,
}
