//! Variants of a schema for the classification of disputes: if a variant allows something that the schema
//! itself does not, the variant shows which keyword caused the dispute.

use serde_json::{Map, Value, json};

use crate::cases::Case;

/// Returns the schema without any `format`, or `None` if it has none.
pub fn without_formats(case: &Case) -> Option<Case> {
    let mut schema = case.schema.clone();
    drop_formats(&mut schema).then(|| of(case, schema))
}

/// Returns the schema with the keywords beside each `$ref` asserted, which drafts up to 7 ignore, or `None`
/// if there are none.
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

/// Removes all formats and returns `true` if there were any. A property may be named `format`, so only
/// strings count.
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

/// Asserts all keywords beside references and returns `true` if there were any.
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
