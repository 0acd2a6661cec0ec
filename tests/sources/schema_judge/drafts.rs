//! The same schema as another draft spells it.

use lexiform::schema::Draft;
use serde_json::{Map, Value, json};

/// The name of a draft in `$schema`.
fn uri(draft: Draft) -> &'static str {
    match draft {
        Draft::D4 => "http://json-schema.org/draft-04/schema#",
        Draft::D6 => "http://json-schema.org/draft-06/schema#",
        Draft::D7 => "http://json-schema.org/draft-07/schema#",
        Draft::D2019 => "https://json-schema.org/draft/2019-09/schema",
        Draft::D2020 => "https://json-schema.org/draft/2020-12/schema",
    }
}

/// A schema of 2020-12 in an older draft. What the draft has no word for stays, and means nothing there.
pub(crate) fn spelled(schema: &Value, draft: Draft) -> Value {
    let mut root = translated(schema, draft);
    if let Value::Object(map) = &mut root {
        map.insert("$schema".to_owned(), json!(uri(draft)));
    }
    root
}

fn translated(schema: &Value, draft: Draft) -> Value {
    match schema {
        Value::Bool(true) if draft == Draft::D4 => json!({}),
        Value::Bool(false) if draft == Draft::D4 => json!({"not": {}}),
        Value::Object(map) => {
            let mut out = Map::new();
            for (key, value) in map {
                keyword(&mut out, map, key, value, draft);
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

fn keyword(out: &mut Map<String, Value>, from: &Map<String, Value>, key: &str, value: &Value, draft: Draft) {
    let old = draft <= Draft::D7;
    let mut put = |key: &str, value: Value| drop(out.insert(key.to_owned(), value));
    match key {
        "items" if from.contains_key("prefixItems") => put("additionalItems", translated(value, draft)),
        "prefixItems" => put("items", each(value, draft)),
        "exclusiveMinimum" | "exclusiveMaximum" if draft == Draft::D4 => {
            put(
                if key == "exclusiveMinimum" {
                    "minimum"
                } else {
                    "maximum"
                },
                value.clone(),
            );
            put(key, json!(true));
        }
        "$defs" if old => put("definitions", each(value, draft)),
        "dependentSchemas" if old => put("dependencies", each(value, draft)),
        "dependentRequired" if old => put("dependencies", value.clone()),
        // Names of resources are taken away: what they lead to is found by its place.
        "$id" | "$dynamicAnchor" if old => {}
        "$dynamicAnchor" => put("$recursiveAnchor", json!(true)),
        "$dynamicRef" if old => put("$ref", json!("#")),
        "$dynamicRef" => put("$recursiveRef", json!("#")),
        "$ref" if old => {
            let place = value.as_str().unwrap_or_default().replace("$defs", "definitions");
            put(
                "$ref",
                json!(place.replace("https://example.com/tree", "#/definitions/tree")),
            );
        }
        "properties" | "patternProperties" | "$defs" | "dependentSchemas" | "anyOf" | "allOf" | "oneOf" => {
            put(key, each(value, draft));
        }
        "enum" | "const" => put(key, value.clone()),
        _ => put(key, translated(value, draft)),
    }
}

/// The schemas of a list or a map.
fn each(value: &Value, draft: Draft) -> Value {
    match value {
        Value::Array(list) => list.iter().map(|schema| translated(schema, draft)).collect(),
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, schema)| (key.clone(), translated(schema, draft)));
            Value::Object(entries.collect())
        }
        other => other.clone(),
    }
}
