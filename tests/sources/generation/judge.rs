//! Which keys a schema lists for a value, found by walking through the schema as it is written.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::random::Dice;

const KEYS: [&str; 4] = ["a", "b", "ab", "c"];

/// One way in which schemas hold for an object: what they say of its keys.
#[derive(Clone, Default)]
struct Way<'s> {
    lists: bool,
    says_more: bool,
    named: BTreeSet<&'s str>,
    patterns: Vec<&'s str>,
    /// What is said of the value of a key.
    parts: Vec<(String, &'s Value)>,
}

impl<'s> Way<'s> {
    fn and(&self, other: &Way<'s>) -> Way<'s> {
        Way {
            lists: self.lists | other.lists,
            says_more: self.says_more | other.says_more,
            named: self.named.union(&other.named).copied().collect(),
            patterns: [&self.patterns[..], &other.patterns].concat(),
            parts: [&self.parts[..], &other.parts].concat(),
        }
    }

    fn allows(&self, key: &str) -> bool {
        let matched = |pattern: &&str| match pattern.strip_prefix('^') {
            Some(beginning) => key.starts_with(beginning),
            None => key.ends_with(pattern.trim_end_matches('$')),
        };
        !self.lists || self.says_more || self.named.contains(key) || self.patterns.iter().any(matched)
    }
}

/// Whether a value that is valid can be written where objects that list their keys are closed.
pub(crate) fn is_listed(root: &Value, value: &Value) -> bool {
    is_listed_by(root, &[root], value)
}

fn is_listed_by(root: &Value, schemas: &[&Value], value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|item| {
            let parts: Vec<&Value> = schemas.iter().filter_map(|schema| schema.get("items")).collect();
            is_listed_by(root, &parts, item)
        }),
        Value::Object(map) => {
            let ways = schemas.iter().fold(vec![Way::default()], |ways, schema| {
                product(&ways, &ways_of(root, schema, value))
            });
            ways.iter().any(|way| {
                map.iter().all(|(key, part)| {
                    let said = way.parts.iter().filter(|(name, _)| name == key);
                    let said: Vec<&Value> = said.map(|(_, schema)| *schema).collect();
                    way.allows(key) && is_listed_by(root, &said, part)
                })
            })
        }
        _ => true,
    }
}

fn product<'s>(left: &[Way<'s>], right: &[Way<'s>]) -> Vec<Way<'s>> {
    left.iter()
        .flat_map(|one| right.iter().map(|other| one.and(other)))
        .collect()
}

fn holds(root: &Value, schema: &Value, value: &Value) -> bool {
    let mut whole = match schema {
        Value::Object(map) => map.clone(),
        other => return other == &json!(true),
    };
    whole.insert(
        "$defs".to_owned(),
        root.get("$defs").cloned().unwrap_or(json!({})),
    );
    jsonschema::draft202012::new(&Value::Object(whole))
        .expect("a valid schema")
        .is_valid(value)
}

/// The ways in which a schema holds for an object.
fn ways_of<'s>(root: &'s Value, schema: &'s Value, value: &Value) -> Vec<Way<'s>> {
    let Value::Object(map) = schema else {
        return vec![Way::default()];
    };
    let mut ways = vec![own(map, value)];
    let and = |ways: &[Way<'s>], schema: &'s Value| product(ways, &ways_of(root, schema, value));
    for schema in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        ways = and(&ways, schema);
    }
    if let Some(name) = map.get("$ref").and_then(Value::as_str) {
        ways = and(&ways, root.pointer(&name[1..]).expect("a definition"));
    }
    if let Some(list) = map.get("anyOf").and_then(Value::as_array) {
        let branches = list.iter().filter(|schema| holds(root, schema, value));
        let branches: Vec<Way> = branches.flat_map(|schema| ways_of(root, schema, value)).collect();
        ways = product(&ways, &branches);
    }
    let asked = map
        .get("if")
        .filter(|_| map.contains_key("then") || map.contains_key("else"));
    if let Some(condition) = asked {
        let is_true = holds(root, condition, value);
        let mut asked = own(condition.as_object().expect("an object"), value);
        asked.lists &= is_true;
        if !is_true {
            asked.parts.clear();
        }
        ways = product(&ways, &[asked]);
        if let Some(then) = map.get(if is_true { "then" } else { "else" }) {
            ways = and(&ways, then);
        }
    }
    for (key, schema) in map
        .get("dependentSchemas")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if value.get(key).is_some() {
            let named = Way {
                named: [key.as_str()].into(),
                ..Way::default()
            };
            ways = and(&product(&ways, &[named]), schema);
        }
    }
    ways
}

/// What the keywords of one schema say by themselves.
fn own<'s>(map: &'s Map<String, Value>, value: &Value) -> Way<'s> {
    let more = ["additionalProperties", "unevaluatedProperties", "propertyNames"];
    let mut way = Way {
        lists: map.contains_key("properties"),
        says_more: more.iter().any(|name| map.contains_key(*name)),
        ..Way::default()
    };
    for (key, schema) in map
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        way.named.insert(key);
        way.parts.push((key.clone(), schema));
    }
    way.named.extend(
        map.get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str),
    );
    for (pattern, schema) in map
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        way.patterns.push(pattern);
        let alone = Way {
            lists: true,
            patterns: vec![pattern],
            ..Way::default()
        };
        for key in value
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .filter(|key| alone.allows(key))
        {
            way.parts.push((key.clone(), schema));
        }
    }
    way
}

/// A schema of objects, with two definitions.
pub(crate) fn schema(dice: &mut Dice, depth: usize) -> Value {
    let mut root = object(dice, depth);
    root["$defs"] = json!({"x": object(dice, 0), "y": object(dice, 0)});
    root
}

fn object(dice: &mut Dice, depth: usize) -> Value {
    let mut map = Map::new();
    if dice.roll(2) == 0 {
        map.insert("type".to_owned(), json!("object"));
    }
    for _ in 0..1 + dice.roll(3) {
        let (name, value) = keyword(dice, depth);
        map.insert(name.to_owned(), value);
    }
    Value::Object(map)
}

fn keyword(dice: &mut Dice, depth: usize) -> (&'static str, Value) {
    let key = *dice.pick(&KEYS);
    match dice.roll(if depth == 0 { 7 } else { 16 }) {
        0..=3 => (
            "properties",
            json!({key: part(dice, depth), *dice.pick(&KEYS): part(dice, depth)}),
        ),
        4 => ("required", json!([key])),
        5 => (
            "patternProperties",
            json!({*dice.pick(&["^a", "b$"]): part(dice, 0)}),
        ),
        6 if dice.roll(3) == 0 => (
            *dice.pick(&["additionalProperties", "unevaluatedProperties"]),
            dice.pick(&[json!(true), json!(false), json!({"type": "integer"})])
                .clone(),
        ),
        6 => (
            "dependentSchemas",
            json!({key: {"properties": {*dice.pick(&KEYS): part(dice, 0)}}}),
        ),
        7 | 8 => ("allOf", json!([object(dice, depth - 1), object(dice, depth - 1)])),
        9 | 10 => ("anyOf", json!([object(dice, depth - 1), object(dice, depth - 1)])),
        11 => ("$ref", json!(*dice.pick(&["#/$defs/x", "#/$defs/y"]))),
        12 | 13 => (
            "if",
            json!({"properties": {key: {"const": dice.roll(2)}}, "required": [key]}),
        ),
        14 => ("then", object(dice, depth - 1)),
        _ => ("else", object(dice, depth - 1)),
    }
}

fn part(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(6) {
        0 | 1 => json!({"type": "integer"}),
        2 => json!({"const": dice.roll(2)}),
        3 => json!({"items": object(dice, 0)}),
        4 if depth > 0 => object(dice, depth - 1),
        _ => json!({}),
    }
}

/// A value that such schemas may allow.
pub(crate) fn instance(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(if depth == 0 { 2 } else { 9 }) {
        0 | 1 => json!(dice.roll(3)),
        2 => json!([instance(dice, depth - 1)]),
        _ => {
            let keys = (0..dice.roll(4)).map(|_| ((*dice.pick(&KEYS)).to_owned(), instance(dice, depth - 1)));
            Value::Object(keys.collect())
        }
    }
}
