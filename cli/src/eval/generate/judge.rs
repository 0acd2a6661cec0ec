//! Judges whether the text of an answer is a JSON value that a schema allows.
//!
//! The validator is the crate `jsonschema`, which shares nothing with the compiler of this repository. It
//! uses the draft that `$schema` names, 2020-12 without it, and checks formats in every draft. Nothing is
//! fetched.

use std::sync::Arc;

use serde_json::Value;

use super::item::{Judge, Judged, Verdict};
use crate::eval::panics::caught;

/// Creates the judge of answers under a schema.
pub(super) fn of_schema(schema: Arc<Value>) -> Judge {
    Box::new(move |text| judged(&schema, text))
}

fn judged(schema: &Value, text: &str) -> Judged {
    let parsed = match serde_json::from_str::<Value>(text) {
        Ok(value) => value,
        Err(error) if error.to_string().starts_with("recursion limit") => {
            let reason = "the answer nests too deep for the validator";
            return Judged::new(Verdict::Unjudged, "", reason);
        }
        Err(error) => return not_json(schema, text, &error),
    };
    validated(schema, &parsed)
}

/// Judges a text that is not JSON: a valid value within it is counted apart.
fn not_json(schema: &Value, text: &str, error: &serde_json::Error) -> Judged {
    let wrapped = wrapped(text).and_then(|inside| serde_json::from_str::<Value>(inside).ok());
    match wrapped.map(|value| validated(schema, &value)) {
        Some(inside) if inside.verdict == Verdict::Valid => {
            let reason = "the value is valid, but other text is around it";
            Judged::new(Verdict::Wrapped, "", reason)
        }
        _ if text.trim().is_empty() => Judged::new(Verdict::NotJson, "", "the answer is empty"),
        _ => Judged::new(Verdict::NotJson, "", error.to_string()),
    }
}

/// Returns the text in the first block of Markdown, or from the first opening brace or bracket to the last
/// closing one.
fn wrapped(text: &str) -> Option<&str> {
    if let Some((_, after)) = text.split_once("```") {
        let (_, block) = after.split_once('\n')?;
        return Some(block.split_once("```").map_or(block, |(block, _)| block));
    }
    let start = text.find(['{', '['])?;
    let end = text.rfind(['}', ']'])?;
    text.get(start..=end)
}

fn validated(schema: &Value, value: &Value) -> Judged {
    let options = jsonschema::options().should_validate_formats(true).offline();
    // Both may panic on schemas that their author did not think of; that is no reason to end a run.
    let judged = caught(|| {
        let validator = options
            .build(schema)
            .map_err(|error| format!("the validator does not accept the schema: {error}"))?;
        Ok(match validator.iter_errors(value).next() {
            None => Judged::valid(),
            Some(error) => {
                let place = error.instance_path().to_string();
                let reason = format!("{}: {}", error.kind().keyword(), shortened(&error.to_string()));
                Judged::new(Verdict::Invalid, place, reason)
            }
        })
    });
    judged
        .and_then(|it| it)
        .unwrap_or_else(|reason| Judged::new(Verdict::Unjudged, "", shortened(&reason)))
}

const REASON_CHARACTERS: usize = 300;

/// Truncates a reason: those of the validator quote the whole instance.
fn shortened(reason: &str) -> String {
    match reason.char_indices().nth(REASON_CHARACTERS) {
        None => reason.to_owned(),
        Some((end, _)) => format!("{}…", &reason[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(schema: Value, text: &str) -> (Verdict, String) {
        let judged = of_schema(Arc::new(schema))(text);
        (judged.verdict, judged.place)
    }

    fn person() -> Value {
        json!({"type": "object", "properties": {"a": {"items": {"type": "integer"}}}, "required": ["a"]})
    }

    #[test]
    fn the_place_of_the_first_error_is_a_pointer() {
        let found = |text: &str| verdict(person(), text);
        assert_eq!(found(r#"{"a": [1, 2]}"#), (Verdict::Valid, String::new()));
        assert_eq!(found(r#"{"a": [1, "2"]}"#), (Verdict::Invalid, "/a/1".to_owned()));
        assert_eq!(found("{}"), (Verdict::Invalid, String::new()));
        assert_eq!(found(r#"{"a": [1"#), (Verdict::NotJson, String::new()));
        assert_eq!(found(" "), (Verdict::NotJson, String::new()));
    }

    #[test]
    fn a_valid_value_among_words_is_counted_apart() {
        let found = |text: &str| verdict(person(), text).0;
        assert_eq!(found("Here:\n```json\n{\"a\": []}\n```\nDone."), Verdict::Wrapped);
        assert_eq!(found("The object {\"a\": [3]} fits."), Verdict::Wrapped);
        assert_eq!(found("The object {\"a\": [true]} fits."), Verdict::NotJson);
        assert_eq!(found("} no {"), Verdict::NotJson);
    }

    /// In draft 4 `exclusiveMinimum` is a boolean, and from draft 6 on a number.
    #[test]
    fn the_draft_is_the_one_that_the_schema_names() {
        let draft = |number: u8, exclusive: Value| {
            let uri = format!("http://json-schema.org/draft-0{number}/schema#");
            json!({"$schema": uri, "minimum": 1, "exclusiveMinimum": exclusive})
        };
        assert_eq!(verdict(draft(4, json!(true)), "1").0, Verdict::Invalid);
        assert_eq!(verdict(draft(4, json!(false)), "1").0, Verdict::Valid);
        assert_eq!(verdict(draft(6, json!(0)), "1").0, Verdict::Valid);
        assert_eq!(verdict(draft(7, json!(1)), "1").0, Verdict::Invalid);
    }

    #[test]
    fn formats_are_checked_in_every_draft() {
        for uri in [
            "http://json-schema.org/draft-04/schema#",
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2020-12/schema",
        ] {
            let schema = json!({"$schema": uri, "format": "ipv4"});
            assert_eq!(verdict(schema.clone(), "\"1.2.3.4\"").0, Verdict::Valid);
            assert_eq!(verdict(schema, "\"1.2.3\"").0, Verdict::Invalid);
        }
    }

    #[test]
    fn a_schema_that_the_validator_cannot_read_judges_nothing() {
        let remote = json!({"$ref": "https://example.com/other.json"});
        assert_eq!(verdict(remote, "1").0, Verdict::Unjudged);
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert_eq!(verdict(json!(true), &deep).0, Verdict::Unjudged);
    }
}
