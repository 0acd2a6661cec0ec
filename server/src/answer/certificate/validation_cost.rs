//! The cost of validating a JSON value against its schema: checks whether it takes a bounded number of steps.
//!
//! The independent validator follows a schema as it is written. Forty levels of `{"allOf": [{"$ref":
//! "#/$defs/next"}, {"$ref": "#/$defs/next"}]}` are two kilobytes, and cost it 2⁴⁰ steps; no limit of the
//! compiler catches this, because a grammar recognises that both are the same. So the steps are counted
//! before they are taken, by walking the schema along the value as the validator would, without checking
//! anything.

use serde_json::Value;

/// The maximum number of steps of an independent check: some tens of milliseconds.
const STEPS: usize = 200_000;

/// Keywords that hold lists of schemas for the same value.
const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords that hold a single schema for the same value.
const CONDITIONS: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords that map property names to schemas for the same value, each applied if the property is present.
const DEPENDENCIES: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose schema may test every part of the value.
const ANY_PART: [&str; 6] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "additionalItems",
    "unevaluatedItems",
    "contains",
];

/// Returns `true` if validation takes at most `STEPS` steps. Returns `false` for a schema with a reference
/// that cannot be resolved.
pub(crate) fn is_small(schema: &Value, value: &Value) -> bool {
    let mut walk = CostWalk {
        root: schema,
        todo: vec![(schema, value)],
        steps: 0,
        lost: false,
    };
    while let Some((schema, value)) = walk.todo.pop() {
        walk.step(schema, value);
        if walk.lost || walk.steps > STEPS {
            return false;
        }
    }
    true
}

struct CostWalk<'a> {
    root: &'a Value,
    todo: Vec<(&'a Value, &'a Value)>,
    steps: usize,
    /// `true` if a reference could not be resolved.
    lost: bool,
}

impl<'a> CostWalk<'a> {
    fn push(&mut self, schema: &'a Value, value: &'a Value) {
        self.steps += 1;
        if self.steps <= STEPS {
            self.todo.push((schema, value));
        }
    }

    fn step(&mut self, schema: &'a Value, value: &'a Value) {
        let Some(map) = schema.as_object() else { return };
        let listed = map.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        self.steps += 1 + listed / 16;
        // To find out which parts were evaluated, the validator reads the adjacent schemas again.
        let asked = ["unevaluatedProperties", "unevaluatedItems"].map(|name| map.contains_key(name));
        for _ in 0..=asked.into_iter().filter(|asked| *asked).count() {
            self.same(schema, value);
        }
        match value {
            Value::Array(items) => self.items(schema, items),
            Value::Object(members) => self.members(schema, members),
            _ => {}
        }
    }

    /// Pushes the schemas that test the same value.
    fn same(&mut self, schema: &'a Value, value: &'a Value) {
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            match schema.get(name).map(|target| self.resolve(target)) {
                None => {}
                Some(Some(target)) => self.push(target, value),
                Some(None) => self.lost = true,
            }
        }
        for name in ALTERNATIVES {
            let all = schema.get(name).and_then(Value::as_array);
            all.into_iter().flatten().for_each(|one| self.push(one, value));
        }
        for name in CONDITIONS {
            schema.get(name).into_iter().for_each(|one| self.push(one, value));
        }
        for name in DEPENDENCIES {
            let all = schema.get(name).and_then(Value::as_object);
            all.into_iter()
                .flatten()
                .for_each(|(_, one)| self.push(one, value));
        }
    }

    fn items(&mut self, schema: &'a Value, items: &'a [Value]) {
        for name in ["prefixItems", "items"] {
            match schema.get(name) {
                Some(Value::Array(schemas)) => {
                    schemas
                        .iter()
                        .zip(items)
                        .for_each(|(one, item)| self.push(one, item));
                }
                Some(one) => items.iter().for_each(|item| self.push(one, item)),
                None => {}
            }
        }
        self.parts(schema, items.iter());
    }

    fn members(&mut self, schema: &'a Value, members: &'a serde_json::Map<String, Value>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, member) in members {
                properties
                    .get(name)
                    .into_iter()
                    .for_each(|one| self.push(one, member));
            }
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for one in patterns.into_iter().flatten().map(|(_, one)| one) {
            members.values().for_each(|member| self.push(one, member));
        }
        self.parts(schema, members.values());
    }

    fn parts(&mut self, schema: &'a Value, parts: impl Iterator<Item = &'a Value> + Clone) {
        for one in ANY_PART.iter().filter_map(|name| schema.get(*name)) {
            parts.clone().for_each(|part| self.push(one, part));
        }
    }

    /// Returns the schema that a reference within the document names.
    fn resolve(&self, target: &Value) -> Option<&'a Value> {
        let pointer = target.as_str()?.strip_prefix('#')?;
        // A percent sign escapes another character here; this is rare, so such references are not resolved.
        let plain = !pointer.contains('%');
        plain.then(|| self.root.pointer(pointer)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn doubling(levels: usize, keyword: &str) -> Value {
        let next = |level: usize| json!({"$ref": format!("#/$defs/a{}", level + 1)});
        let level = |level: usize| (format!("a{level}"), json!({keyword: [next(level), next(level)]}));
        let mut defs: Map<String, Value> = (0..levels).map(level).collect();
        defs.insert(format!("a{levels}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/a0", "$defs": defs})
    }

    #[test]
    fn what_doubles_at_each_level_is_not_small() {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert!(is_small(&doubling(8, keyword), &json!("x")));
            assert!(!is_small(&doubling(40, keyword), &json!("x")));
        }
        let twice = json!({"items": {"$ref": "#"}});
        let lists = json!({"allOf": [twice, twice]});
        let nested = (0..60).fold(json!([]), |inner, _| json!([inner]));
        assert!(is_small(&lists, &json!([[1], [2]])) && !is_small(&lists, &nested));
        assert!(!is_small(&json!({"$ref": "#"}), &json!(1)), "it has no end");
        assert!(!is_small(&json!({"$ref": "https://example.org/"}), &json!(1)));
    }

    #[test]
    fn ordinary_schemas_and_long_values_are_small() {
        let tree = json!({"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"},
                          "tags": {"type": "array", "items": {"type": "string"}}}});
        let leaf = json!({"tags": ["a", "b"]});
        let value = (0..12).fold(leaf, |inner, _| json!({"left": inner, "right": inner}));
        assert!(is_small(&tree, &value));
        let list = json!({"type": "array", "items": {"type": "integer"}});
        assert!(is_small(&list, &json!(vec![1; 20_000])));
    }
}
