//! The fields `cache_salt` and `prompt_cache_key`, which separate prompts in the prompt cache.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::super::fields::{Fields, Problems};

/// Reads the fields. Requests of one client find each other's prompts in the cache only if they agree in both
/// of them: in `cache_salt`, as in vLLM, and in `prompt_cache_key`, as in OpenAI's API.
///
/// Returns a digest of the two, because values may be long and stay in memory as long as what is cached;
/// `None` if neither is there.
pub(in crate::wire) fn salt(fields: &mut Fields, problems: &mut Problems) -> Option<Arc<str>> {
    let salt = fields.string("cache_salt", problems);
    if salt.as_ref().is_some_and(String::is_empty) {
        problems.invalid(
            fields.path("cache_salt"),
            "expected a string of at least one character",
        );
    }
    let key = fields.string("prompt_cache_key", problems);
    if salt.is_none() && key.is_none() {
        return None;
    }
    let mut digest = Sha256::new();
    for part in [salt, key] {
        // The length tells absent, empty and adjacent parts apart.
        let length = part.as_ref().map_or(u64::MAX, |part| part.len() as u64);
        digest.update(length.to_le_bytes());
        digest.update(part.unwrap_or_default());
    }
    let hex = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    Some(hex.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn salt_of(body: serde_json::Value) -> Option<Arc<str>> {
        let mut problems = Problems::default();
        let map = body.as_object().cloned().unwrap_or_default();
        let salt = salt(&mut Fields::root(map), &mut problems);
        assert!(problems.check().is_ok(), "{body}");
        salt
    }

    #[test]
    fn requests_agree_only_if_both_fields_do() {
        let bodies = [
            json!({}),
            json!({"cache_salt": "a"}),
            json!({"cache_salt": "b"}),
            json!({"prompt_cache_key": "a"}),
            json!({"prompt_cache_key": ""}),
            json!({"cache_salt": "a", "prompt_cache_key": ""}),
            json!({"cache_salt": "a", "prompt_cache_key": "b"}),
            json!({"cache_salt": "ab", "prompt_cache_key": ""}),
            json!({"cache_salt": "b", "prompt_cache_key": "a"}),
        ];
        for (number, one) in bodies.iter().enumerate() {
            for (other_number, other) in bodies.iter().enumerate() {
                let same = salt_of(one.clone()) == salt_of(other.clone());
                assert_eq!(same, number == other_number, "{one} {other}");
            }
        }
        assert_eq!(
            salt_of(json!({"cache_salt": null, "prompt_cache_key": null})),
            None
        );
    }
}
