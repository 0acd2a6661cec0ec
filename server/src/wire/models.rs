//! `GET /v1/models`, the name of a model in a request, and the small answers of operations.

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Returns the model that the body of a request names, before the body is read as a whole: how it is read
/// depends on the model. A body that is not understood names none; its reader says what is wrong with it.
pub fn named(body: &[u8]) -> Option<String> {
    let named: Named = serde_json::from_slice(body).ok()?;
    named.model
}

/// The query of a route without a body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelQuery {
    /// The name of a model.
    pub model: Option<String>,
}

struct Named {
    model: Option<String>,
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

/// Visits the fields of a body. Of several of one name the last one counts, as for its reader.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Named;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Named, A::Error> {
        let mut model = None;
        while let Some(name) = fields.next_key::<std::borrow::Cow<'de, str>>()? {
            if name != "model" {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            model = match fields.next_value()? {
                Value::String(name) => Some(name),
                _ => None,
            };
        }
        Ok(Named { model })
    }
}

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
    /// Further names that requests may use.
    pub aliases: &'a [String],
    /// Whether it is in memory: `unloaded`, `loading`, `loaded`, `unloading` or `failed`.
    pub state: &'static str,
    /// Why its last load failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Always `model`.
    pub object: &'static str,
    /// When the model was last loaded, in seconds since 1970; 0 if it never was.
    pub created: u64,
    /// Always `lexiform`.
    pub owned_by: &'static str,
    /// What is known of it once it was loaded.
    #[serde(flatten)]
    pub details: Option<CardDetails>,
}

/// What is known of a model once it was loaded.
#[derive(Debug, Serialize)]
pub struct CardDetails {
    /// The maximum number of tokens of prompt and output together.
    pub max_model_len: usize,
    /// The format of its weights in memory: `stored` as in the folder, or the format that they were rounded
    /// to, which makes it a different model.
    pub weights: &'static str,
    /// The bytes that its weights take in memory, with those of its draft model.
    pub weight_bytes: u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_model_is_found_before_the_rest_is_read() {
        for (body, expected) in [
            (r#"{"a": [{"model": "x"}], "model": "m", "b": 1}"#, Some("m")),
            (r#"{"model": "a", "mod\u0065l": "b\u0021"}"#, Some("b!")),
            (r#"{"model": 3}"#, None),
            (r#"{"model": null}"#, None),
            (r#"{"prompt": "x"}"#, None),
            (r#"["model"]"#, None),
            (r#"{"model": "m""#, None),
        ] {
            assert_eq!(named(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }
}
