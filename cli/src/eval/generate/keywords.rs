//! Lists the keywords that a schema uses.

use std::collections::BTreeSet;

use serde_json::Value;

/// Keywords whose value is a schema, or a list of schemas.
const OF_SCHEMAS: [&str; 18] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "extends",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "disallow",
];

/// Keywords whose value is an object of schemas under names of the author's choice.
const OF_NAMED_SCHEMAS: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Keywords that only hold schemas for others to refer to.
const SHELVES: [&str; 2] = ["$defs", "definitions"];

/// Keywords about instances whose value is no schema.
const PLAIN: [&str; 27] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "const",
    "contentEncoding",
    "contentMediaType",
    "dependentRequired",
    "divisibleBy",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
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
    "type",
    "uniqueItems",
];

/// Returns the keywords of a schema and of the schemas in it, sorted; a format is named with its keyword, as
/// `format: date-time`. Words that no draft knows are left out.
pub(super) fn of(schema: &Value) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let Some(object) = schema.as_object() else {
            open.extend(schema.as_array().into_iter().flatten());
            continue;
        };
        for (keyword, value) in object {
            let keyword = keyword.as_str();
            if OF_SCHEMAS.contains(&keyword) {
                open.push(value);
            } else if OF_NAMED_SCHEMAS.contains(&keyword) {
                open.extend(value.as_object().into_iter().flat_map(|it| it.values()));
            } else if !PLAIN.contains(&keyword) {
                continue;
            }
            match (keyword, value.as_str()) {
                ("format", Some(format)) => found.insert(format!("format: {format}")),
                (shelf, _) if SHELVES.contains(&shelf) => false,
                (keyword, _) => found.insert(keyword.to_owned()),
            };
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A property can have the name of a keyword, and a constant can look like a schema.
    #[test]
    fn names_and_constants_are_no_keywords() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"maxItems": {"type": "string", "format": "uri"}, "x": true},
            "definitions": {"not": {"items": [{"pattern": "a"}, {"oneOf": [{"minimum": 1}]}]}},
            "const": {"multipleOf": 3},
            "x-own": {"maximum": 3},
        });
        let expected = [
            "const",
            "format: uri",
            "items",
            "minimum",
            "oneOf",
            "pattern",
            "properties",
            "type",
        ];
        assert_eq!(of(&schema), expected);
    }
}
