//! Changes to the value of a JSON text while it is written, as JSON Patch.

use lexiform_syntax::answer::{JsonEvent, JsonValues};
use serde_json::{Value, json};

/// Converts events to operations of JSON Patch (RFC 6902). Applied in order to any document, the operations
/// of a whole text produce its value: the first one replaces the document.
pub fn operations(values: &JsonValues, found: Vec<JsonEvent>) -> Vec<Value> {
    let operation = |found| {
        let (path, value) = match found {
            JsonEvent::Key(..) => return None,
            JsonEvent::Opened(path, true, _) => (path, json!({})),
            JsonEvent::Opened(path, false, _) => (path, json!([])),
            JsonEvent::Whole(path, bytes) => (path, serde_json::from_str(values.text().get(bytes)?).ok()?),
        };
        Some(json!({"op": "add", "path": path, "value": value}))
    };
    found.into_iter().filter_map(operation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies `add` as RFC 6902 specifies, in the slow and obvious way.
    fn apply(document: &mut Value, operation: &Value) {
        let path = operation["path"].as_str().expect("a pointer");
        let Some((holder, last)) = path.rsplit_once('/') else {
            *document = operation["value"].clone();
            return;
        };
        match document.pointer_mut(holder).expect("what holds it is there") {
            Value::Array(items) => items.insert(last.parse().expect("a number"), operation["value"].clone()),
            Value::Object(map) => {
                map.insert(
                    last.replace("~1", "/").replace("~0", "~"),
                    operation["value"].clone(),
                );
            }
            other => panic!("{other} holds nothing"),
        }
    }

    const TEXTS: [&str; 6] = [
        r#"{"name": "A\"d\\a", "tags": ["a", {"b/~": -1.5e3}, []], "": null, "é": {"ok": true}}"#,
        "  [1, 2 , 3]\n",
        "12345678901234567890.5",
        r#""only \u00e9 text""#,
        "{}",
        r#"[[["]"]], {"a": {"a": {"a": "}"}}}]"#,
    ];

    #[test]
    fn the_operations_build_the_value_however_the_text_is_cut() {
        for text in TEXTS {
            let expected: Value = serde_json::from_str(text).expect("JSON");
            for size in 1..=text.len() {
                let (mut progress, mut document) = (JsonValues::default(), Value::Null);
                let mut pieces: Vec<String> = Vec::new();
                for letter in text.chars() {
                    match pieces.last_mut() {
                        Some(piece) if piece.len() < size => piece.push(letter),
                        _ => pieces.push(letter.into()),
                    }
                }
                for piece in &pieces {
                    let found = progress.push(piece);
                    let told = operations(&progress, found);
                    told.iter().for_each(|operation| apply(&mut document, operation));
                }
                let found = progress.finish();
                let told = operations(&progress, found);
                told.iter().for_each(|operation| apply(&mut document, operation));
                assert_eq!(document, expected, "{text} in pieces of {size}");
            }
        }
    }

    #[test]
    fn what_is_not_json_does_no_harm() {
        for text in ["]}", "{\"a\" 1}}", "\u{0}é,,", "{{{", "\"\\", "[\"a\":,]"] {
            let mut progress = JsonValues::default();
            let found = progress.push(text);
            let _ = operations(&progress, found);
            let end = progress.finish();
            assert!(operations(&progress, end).len() <= 1, "{text}");
        }
    }
}
