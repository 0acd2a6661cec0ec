//! A short way to write a JSON Schema, for showing it to a model.
//!
//! A schema says what an answer must be, in a form that is long and full of words a small model need not read. The
//! sketch keeps what matters for filling it in (keys, types, choices) and drops the rest (titles, descriptions, bounds):
//!
//! ```text
//!  {"type": "object", "properties": {"name": {"type": "string"},          {name:string,
//!   "tags": {"type": "array", "items": {"type": "string"}},         ─►     tags:[string],
//!   "status": {"enum": ["open", "closed"]}}, "required": [...]}            status:"open"|"closed"}
//! ```
//!
//! The grammar is compiled from the schema, never from the sketch: the sketch is a hint in the prompt and may lose
//! detail. The demo model is trained on sketches made by this very function, so a change here asks for a new model.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// How many schemas may lie inside each other before the sketch says `any`; recursive schemas end here.
const DEPTH: usize = 12;
/// Where a sketch stops growing; a hint longer than this helps no model.
const BYTES: usize = 16 * 1024;

/// Writes `schema` as a sketch. Never fails: what it does not understand is written as `any`.
///
/// Keys that are not required carry a question mark, `null` alternatives become `|null`, local references are followed.
pub fn sketch(schema: &Value) -> String {
    let mut writer = Writer {
        root: schema,
        out: String::new(),
    };
    writer.schema(schema, 0);
    writer.out
}

struct Writer<'a> {
    root: &'a Value,
    out: String,
}

impl<'a> Writer<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) {
        let Value::Object(map) = schema else {
            return self.out.push_str("any");
        };
        if depth >= DEPTH || self.out.len() >= BYTES {
            self.out.push_str("any");
        } else if let Some(target) = map.get("$ref").and_then(|name| self.resolve(name)) {
            self.schema(target, depth + 1);
        } else if let Some(value) = map.get("const") {
            self.literal(value);
        } else if let Some(Value::Array(values)) = map.get("enum") {
            self.alternatives(values, |writer, value| writer.literal(value));
        } else if let Some(Value::Array(branches)) = map.get("anyOf").or_else(|| map.get("oneOf")) {
            self.alternatives(branches, |writer, branch| writer.schema(branch, depth + 1));
        } else if let Some(Value::Array(parts)) = map.get("allOf").filter(|_| !map.contains_key("properties"))
        {
            // One part is how some generators attach a description to a reference; of several the first is the gist.
            match parts.first() {
                Some(part) => self.schema(part, depth + 1),
                None => self.out.push_str("any"),
            }
        } else {
            self.typed(map, depth);
        }
    }

    fn typed(&mut self, map: &'a Map<String, Value>, depth: usize) {
        match map.get("type") {
            Some(Value::String(name)) => self.of_type(name, map, depth),
            Some(Value::Array(names)) => self.alternatives(names, |writer, name| match name {
                Value::String(name) => writer.of_type(name, map, depth),
                _ => writer.out.push_str("any"),
            }),
            _ if map.contains_key("properties") => self.object(map, depth),
            _ if map.contains_key("items") || map.contains_key("prefixItems") => self.array(map, depth),
            _ => self.out.push_str("any"),
        }
    }

    fn of_type(&mut self, name: &str, map: &'a Map<String, Value>, depth: usize) {
        match name {
            "object" => self.object(map, depth),
            "array" => self.array(map, depth),
            "string" => match map.get("format").and_then(Value::as_str) {
                Some(format @ ("date" | "time" | "date-time" | "email")) => self.out.push_str(format),
                _ => self.out.push_str("string"),
            },
            "integer" | "number" | "boolean" | "null" => self.out.push_str(name),
            _ => self.out.push_str("any"),
        }
    }

    fn object(&mut self, map: &'a Map<String, Value>, depth: usize) {
        let properties = map
            .get("properties")
            .and_then(Value::as_object)
            .filter(|map| !map.is_empty());
        let Some(properties) = properties else {
            return match map.get("additionalProperties") {
                Some(values @ Value::Object(_)) => {
                    self.out.push_str("{*:");
                    self.schema(values, depth + 1);
                    self.out.push('}');
                }
                _ => self.out.push_str("object"),
            };
        };
        let required = map
            .get("required")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        // Both lists may have a hundred thousand names.
        let required: HashSet<&str> = required.iter().filter_map(Value::as_str).collect();
        self.out.push('{');
        for (index, (key, value)) in properties.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            if self.is_full() {
                break;
            }
            self.key(key);
            if !required.contains(key.as_str()) {
                self.out.push('?');
            }
            self.out.push(':');
            self.schema(value, depth + 1);
        }
        self.out.push('}');
    }

    fn array(&mut self, map: &'a Map<String, Value>, depth: usize) {
        self.out.push('[');
        if let Some(Value::Array(items)) = map.get("prefixItems") {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    self.out.push(',');
                }
                if self.is_full() {
                    break;
                }
                self.schema(item, depth + 1);
            }
        } else if let Some(items @ Value::Object(_)) = map.get("items") {
            self.schema(items, depth + 1);
        } else {
            self.out.push_str("any");
        }
        self.out.push(']');
    }

    fn alternatives(&mut self, items: &'a [Value], mut write: impl FnMut(&mut Self, &'a Value)) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push('|');
            }
            if self.is_full() {
                break;
            }
            write(self, item);
        }
        if items.is_empty() {
            self.out.push_str("any");
        }
    }

    fn literal(&mut self, value: &Value) {
        self.cut_off(&value.to_string());
    }

    /// Writes a text as far as there is room; what is left out is marked.
    fn cut_off(&mut self, text: &str) {
        let room = BYTES.saturating_sub(self.out.len());
        if text.len() <= room {
            return self.out.push_str(text);
        }
        self.out.push_str(&text[..text.floor_char_boundary(room)]);
        self.out.push('…');
    }

    /// Whether the sketch is as long as it may be, which is marked once.
    fn is_full(&mut self) -> bool {
        let full = self.out.len() >= BYTES;
        if full && !self.out.ends_with(['…', '}', ']']) {
            self.out.push('…');
        }
        full
    }

    fn key(&mut self, key: &str) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !key.is_empty() && key.bytes().all(plain) {
            self.cut_off(key);
        } else {
            self.cut_off(&Value::from(key).to_string());
        }
    }

    fn resolve(&self, name: &Value) -> Option<&'a Value> {
        let pointer = name.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::sketch;
    use serde_json::json;

    #[test]
    fn keys_types_and_choices_stay() {
        let schema = json!({
            "title": "Ticket", "type": "object", "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "title": "Name", "description": "who"},
                "age": {"type": "integer", "minimum": 0},
                "tags": {"type": "array", "items": {"type": "string"}},
                "status": {"enum": ["open", "closed"]},
                "due": {"type": "string", "format": "date"},
                "box": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "boolean"}]},
            },
            "required": ["name", "age", "tags", "status", "box"],
        });
        let want = r#"{name:string,age:integer,tags:[string],status:"open"|"closed",due?:date,box:[number,boolean]}"#;
        assert_eq!(sketch(&schema), want);
    }

    #[test]
    fn references_and_nulls_are_followed() {
        let schema = json!({
            "$defs": {"Item": {"type": "object", "properties": {"sku": {"const": 7}}, "required": ["sku"]}},
            "type": "object",
            "properties": {
                "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "size": {"type": ["integer", "null"]},
                "one": {"allOf": [{"$ref": "#/$defs/Item"}]},
            },
            "required": ["items", "note", "size", "one"],
        });
        assert_eq!(
            sketch(&schema),
            "{items:[{sku:7}],note:string|null,size:integer|null,one:{sku:7}}"
        );
    }

    #[test]
    fn recursion_ends() {
        let schema = json!({"$ref": "#"});
        assert_eq!(sketch(&schema), "any");
        let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
        assert!(sketch(&tree).starts_with("{next:{next:"));
        assert!(sketch(&tree).contains("any"));
    }

    #[test]
    fn a_tree_that_doubles_stays_short() {
        let twice = json!({"type": "object", "properties": {
            "a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}, "d": {"$ref": "#"}}});
        assert!(sketch(&twice).len() < 2 * super::BYTES);
    }

    #[test]
    fn a_sketch_stops_growing_whatever_is_long() {
        let most = super::BYTES + 1_000;
        let names: Vec<String> = (0..90_000).map(|at| format!("key{at}")).collect();
        let properties: serde_json::Map<_, _> = names
            .iter()
            .map(|name| (name.clone(), json!({"type": "string"})))
            .collect();
        for long in [
            json!({"type": "object", "properties": properties, "required": names}),
            json!({"enum": names}),
            json!({"const": names}),
            json!({"anyOf": names.iter().map(|name| json!({"const": name})).collect::<Vec<_>>()}),
            json!({"prefixItems": vec![json!({"type": "string"}); 90_000]}),
            json!({"const": "ä".repeat(90_000)}),
            json!({"properties": {"ä".repeat(90_000): true}}),
        ] {
            let short = sketch(&long);
            assert!(short.len() <= most, "{} bytes", short.len());
            assert!(short.contains('…'), "{short}");
        }
    }

    #[test]
    fn odd_schemas_do_not_fail() {
        assert_eq!(sketch(&json!(true)), "any");
        assert_eq!(sketch(&json!({})), "any");
        assert_eq!(sketch(&json!({"type": "object"})), "object");
        assert_eq!(sketch(&json!({"type": "array"})), "[any]");
        assert_eq!(sketch(&json!({"enum": []})), "any");
        assert_eq!(sketch(&json!({"$ref": "other.json"})), "any");
        assert_eq!(
            sketch(&json!({"type": "object", "additionalProperties": {"type": "integer"}})),
            "{*:integer}"
        );
        let spaced = json!({"properties": {"a b": {"type": "null"}}, "required": ["a b"]});
        assert_eq!(sketch(&spaced), r#"{"a b":null}"#);
    }
}
