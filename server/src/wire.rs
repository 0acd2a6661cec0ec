//! The JSON of the API, and nothing else: what requests may hold, and the shapes of answers.
//!
//! Requests are read field by field rather than derived, for three reasons: all problems of a request are told at
//! once, each with the path of its field; a field that looks like a constraint and is not known is refused rather
//! than dropped; and numbers keep their exact text. This is the only module that derives `Serialize`.

pub mod chat;
pub mod completion;
pub mod constraint;
pub mod decisions;
pub mod error;
pub mod fields;
pub mod generation;
pub mod grammars;
pub mod models;
pub mod otlp;
mod resemblance;
pub mod response;
pub mod responses;
pub mod tags;
pub mod tokens;
pub mod tools;

use serde_json::{Map, Value};

use crate::error::ApiError;

/// The object that a request body must be. `serde_json` bounds the depth, so that no body can exhaust the stack.
///
/// # Errors
/// The body is not UTF-8, not JSON, nested too deeply, or not an object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    let text = std::str::from_utf8(body).map_err(|error| {
        ApiError::malformed(format!(
            "The body is not UTF-8 from byte {} on.",
            error.valid_up_to()
        ))
    })?;
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => {
            let found = fields::type_name(&other);
            Err(ApiError::malformed(format!(
                "The body must be a JSON object, not {found}."
            )))
        }
        Err(error) => Err(ApiError::malformed(format!(
            "The body is not valid JSON: {error}."
        ))),
    }
}
