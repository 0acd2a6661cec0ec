//! The keywords of a schema, for coverage by keyword.

use std::collections::BTreeSet;

use serde_json::Value;

/// The keywords whose value is an object of schemas by name.
const SCHEMAS_BY_NAME: [&str; 6] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
];

/// The keywords whose value is a schema or a list of schemas.
const SCHEMAS: [&str; 15] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
];

/// The keywords that assert something by themselves.
const ASSERTIONS: [&str; 26] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "const",
    "dependentRequired",
    "disallow",
    "divisibleBy",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "extends",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
    "uniqueItems",
];

/// The keywords that hold definitions: they assert nothing.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Returns the keywords that assert something anywhere in a schema. `format` comes with its name, as
/// `format: date`.
pub(crate) fn of(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        match schema {
            Value::Array(schemas) => open.extend(schemas),
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    let name = keyword.as_str();
                    let has_named = SCHEMAS_BY_NAME.contains(&name);
                    let has_schemas = SCHEMAS.contains(&name);
                    if has_named {
                        open.extend(value.as_object().into_iter().flat_map(|named| named.values()));
                    } else if has_schemas {
                        open.push(value);
                    }
                    let asserts = has_named || has_schemas || ASSERTIONS.contains(&name);
                    if asserts && !DEFINITIONS.contains(&name) {
                        found.insert(match value.as_str().filter(|_| name == "format") {
                            Some(format) => format!("format: {format}"),
                            None => keyword.clone(),
                        });
                    }
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A property may be called like a keyword, and a constant may look like a schema.
    #[test]
    fn names_and_constants_are_no_keywords() {
        let schema = json!({
            "title": "pattern",
            "properties": {"minimum": {"format": "date", "type": "string"}, "a": {"items": [{"maxLength": 1}]}},
            "$defs": {"pattern": {"not": {"uniqueItems": true}}},
            "const": {"multipleOf": 2},
            "examples": [{"required": ["a"]}],
            "additionalProperties": false
        });
        let found: Vec<String> = of(&schema).into_iter().collect();
        let expected = [
            "additionalProperties",
            "const",
            "format: date",
            "items",
            "maxLength",
            "not",
            "properties",
            "uniqueItems",
        ];
        assert_eq!(found, expected);
        assert_eq!(of(&json!(true)).len(), 0);
        assert_eq!(of(&json!({"properties": 1, "allOf": "x", "format": 3})).len(), 3);
    }
}
