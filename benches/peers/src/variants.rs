//! Other schemas by which a dispute is tried: what is allowed by one of them and not by the schema itself
//! tells which keyword the dispute is about.

use serde_json::{Map, Value, json};

use crate::cases::Case;

/// The schema without any `format`; `None` if it has none.
pub fn without_formats(case: &Case) -> Option<Case> {
    let mut schema = case.schema.clone();
    drop_formats(&mut schema).then(|| of(case, schema))
}

/// The schema with the keywords beside each `$ref` asserted, as drafts up to 7 do not; `None` if there are
/// none.
pub fn with_siblings(case: &Case) -> Option<Case> {
    let mut schema = case.schema.clone();
    assert_siblings(&mut schema).then(|| of(case, schema))
}

fn of(case: &Case, schema: Value) -> Case {
    Case {
        name: case.name.clone(),
        text: schema.to_string(),
        schema,
        instances: Vec::new(),
    }
}

/// Whether there was one. A property may have that name, so that only texts are taken for formats.
fn drop_formats(value: &mut Value) -> bool {
    match value {
        Value::Object(members) => {
            let own =
                members.get("format").is_some_and(Value::is_string) && members.remove("format").is_some();
            members
                .values_mut()
                .fold(own, |found, member| drop_formats(member) | found)
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |found, item| drop_formats(item) | found),
        _ => false,
    }
}

/// Whether there was one.
fn assert_siblings(value: &mut Value) -> bool {
    match value {
        Value::Object(members) => {
            let found = members
                .values_mut()
                .fold(false, |found, member| assert_siblings(member) | found);
            let is_reference = members.get("$ref").is_some_and(Value::is_string);
            let others: Map<String, Value> = members
                .iter()
                .filter(|(name, _)| !["$ref", "definitions", "$defs", "$schema"].contains(&name.as_str()))
                .map(|(name, member)| (name.clone(), member.clone()))
                .collect();
            if !is_reference || others.is_empty() {
                return found;
            }
            let reference = json!({ "$ref": members["$ref"] });
            members.retain(|name, _| !others.contains_key(name) && name != "$ref");
            members.insert("allOf".to_owned(), json!([reference, others]));
            true
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |found, item| assert_siblings(item) | found),
        _ => false,
    }
}
