//! A short notation for a JSON Schema, for showing it to a model.
//!
//! A schema describes an answer in a form that is long and contains many words that a small model need not
//! read. The sketch keeps what matters for filling it in (keys, types, choices) and drops the rest (titles,
//! descriptions, bounds):
//!
//! ```text
//!  {"type": "object", "properties": {"name": {"type": "string"},          {name:string,
//!   "tags": {"type": "array", "items": {"type": "string"}},         ─►     tags:[string],
//!   "status": {"enum": ["open", "closed"]}}, "required": [...]}            status:"open"|"closed"}
//! ```
//!
//! The grammar is compiled from the schema, never from the sketch: the sketch is a hint in the prompt and may
//! lose detail. The demo model is trained on sketches made by this function, so a change here requires a new
//! model.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// The nesting depth of schemas at which the sketch says `any`; recursive schemas end here.
const SKETCH_DEPTH: usize = 12;
/// The size in bytes at which a sketch stops growing; a longer hint helps no model.
const BYTES: usize = 16 * 1024;

/// Writes `schema` as a sketch. Never fails: unsupported parts are written as `any`.
///
/// Keys that are not required are marked with a question mark, `null` alternatives become `|null`, and local
/// references are followed.
pub fn sketch(schema: &Value) -> String {
    let mut writer = SketchWriter::new(schema, Choices::Listed);
    writer.schema(schema, 0);
    writer.out
}

/// Writes a sketch without the choices of an `enum`, except for those of the schema itself: small models take
/// the first of the listed choices.
pub fn without_choices(schema: &Value) -> String {
    let mut writer = SketchWriter::new(schema, Choices::LeftOut);
    writer.schema(schema, 0);
    writer.out
}

/// Returns the keys of an object of scalars and arrays of scalars, each with its value in the notation of
/// [`without_choices`]: `name (string), age? (integer)`. Returns `None` if the schema contains anything else,
/// or too many keys.
pub fn keys(schema: &Value) -> Option<String> {
    let mut writer = SketchWriter::new(schema, Choices::LeftOut);
    let map = schema.as_object()?;
    let map = match map.get("$ref") {
        Some(target) => writer.resolve(target)?.as_object()?,
        None => map,
    };
    let others = ["$ref", "enum", "const", "anyOf", "oneOf", "allOf"];
    let properties = map.get("properties")?.as_object()?;
    if others.iter().any(|keyword| map.contains_key(*keyword)) || !(1..=MOST_KEYS).contains(&properties.len())
    {
        return None;
    }
    let required = required(map);
    for (index, (key, value)) in properties.iter().enumerate() {
        writer.out.push_str(if index == 0 { "" } else { ", " });
        writer.key(key);
        writer.out.push_str(if required.contains(key.as_str()) {
            " ("
        } else {
            "? ("
        });
        let before = writer.out.len();
        writer.schema(value, 1);
        if writer.out[before..].contains('{') || writer.is_full() {
            return None;
        }
        writer.out.push(')');
    }
    Some(writer.out)
}

/// The most keys that [`keys`] lists.
const MOST_KEYS: usize = 32;

/// Returns the keys that an object must have. There may be a hundred thousand.
fn required(map: &Map<String, Value>) -> HashSet<&str> {
    let names = map.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The way in which an `enum` within a schema is written.
#[derive(Clone, Copy, PartialEq)]
enum Choices {
    Listed,
    /// Only the types of the values are written.
    LeftOut,
}

struct SketchWriter<'a> {
    root: &'a Value,
    choices: Choices,
    out: String,
}

impl<'a> SketchWriter<'a> {
    fn new(root: &'a Value, choices: Choices) -> Self {
        let out = String::new();
        SketchWriter { root, choices, out }
    }

    fn schema(&mut self, schema: &'a Value, depth: usize) {
        let Value::Object(map) = schema else {
            return self.out.push_str("any");
        };
        if depth >= SKETCH_DEPTH || self.out.len() >= BYTES {
            self.out.push_str("any");
        } else if let Some(target) = map.get("$ref").and_then(|name| self.resolve(name)) {
            self.schema(target, depth + 1);
        } else if let Some(value) = map.get("const") {
            self.literal(value);
        } else if let Some(Value::Array(values)) = map.get("enum") {
            match self.choices {
                Choices::LeftOut if depth > 0 => self.types_of(values),
                _ => self.alternatives(values, |writer, value| writer.literal(value)),
            }
        } else if let Some(Value::Array(branches)) = map.get("anyOf").or_else(|| map.get("oneOf")) {
            self.alternatives(branches, |writer, branch| writer.schema(branch, depth + 1));
        } else if let Some(Value::Array(parts)) = map.get("allOf").filter(|_| !map.contains_key("properties"))
        {
            // Some generators use a single part to attach a description to a reference; of several parts, the
            // first is the gist.
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
        let required = required(map);
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

    /// Writes the types of some values, each once.
    fn types_of(&mut self, values: &[Value]) {
        let mut types: Vec<&str> = Vec::new();
        for value in values {
            let name = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(number) if number.is_f64() => "number",
                Value::Number(_) => "integer",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            if !types.contains(&name) {
                types.push(name);
            }
        }
        self.out.push_str(if types.is_empty() { "any" } else { "" });
        self.out.push_str(&types.join("|"));
    }

    fn literal(&mut self, value: &Value) {
        self.cut_off(&value.to_string());
    }

    /// Writes a text as far as there is room, and marks it if something is left out.
    fn cut_off(&mut self, text: &str) {
        let room = BYTES.saturating_sub(self.out.len());
        if text.len() <= room {
            return self.out.push_str(text);
        }
        let end = (0..=room).rev().find(|&end| text.is_char_boundary(end));
        self.out.push_str(&text[..end.unwrap_or(0)]);
        self.out.push('…');
    }

    /// Returns `true` if the sketch has reached its maximum length, and marks this once.
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
    use super::{keys, sketch, without_choices};
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
        assert_eq!(
            without_choices(&schema),
            want.replace(r#""open"|"closed""#, "string")
        );
        let want = "name (string), age (integer), tags ([string]), status (string), due? (date), box ([number,boolean])";
        assert_eq!(keys(&schema).as_deref(), Some(want));
    }

    #[test]
    fn keys_are_those_of_flat_objects() {
        let nested = json!({"properties": {"at": {"properties": {"x": {"type": "number"}}}}});
        let many: serde_json::Map<_, _> = (0..33).map(|key| (key.to_string(), json!(true))).collect();
        for other in [
            json!(true),
            json!({"enum": ["yes", "no"]}),
            json!({"properties": {}}),
            json!({"anyOf": [{"properties": {"a": {}}}]}),
            json!({"properties": many}),
            nested.clone(),
        ] {
            assert_eq!(keys(&other), None, "{other}");
        }
        let referred = json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"b": {"enum": ["x", 1, null, "y"]}}}}});
        assert_eq!(keys(&referred).as_deref(), Some("b? (string|integer|null)"));
        assert_eq!(without_choices(&nested), "{at?:{x?:number}}");
        // The choices of the schema itself are kept: they are its content.
        assert_eq!(without_choices(&json!({"enum": ["yes", "no"]})), r#""yes"|"no""#);
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
