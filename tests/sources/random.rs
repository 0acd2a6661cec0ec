//! Random schemas over all keywords, random values, and grammars of them. A small generator with a fixed seed
//! makes everything, so a failure repeats itself.

use std::sync::Arc;

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::{Diagnostics, ProblemKind};
use lexiform::schema::{Formats, KeyOrder};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use serde_json::{Value, json};

/// A generator of pseudo-random numbers (xorshift).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.roll(list.len())]
    }
}

pub(crate) const KEYS: [&str; 4] = ["a", "b", "ab", "c"];

pub(crate) fn schema(dice: &mut Dice, depth: usize) -> Value {
    if dice.roll(12) == 0 {
        return json!(dice.roll(4) > 0);
    }
    let mut map = serde_json::Map::new();
    for _ in 0..1 + dice.roll(3) {
        let (key, value) = keyword(dice, depth);
        map.insert(key.to_owned(), value);
    }
    Value::Object(map)
}

pub(crate) fn schemas(dice: &mut Dice, depth: usize) -> Value {
    let count = 1 + dice.roll(3);
    Value::Array((0..count).map(|_| schema(dice, depth)).collect())
}

pub(crate) fn object(key: &str, value: Value) -> Value {
    Value::Object([(key.to_owned(), value)].into_iter().collect())
}

pub(crate) fn keyword(dice: &mut Dice, depth: usize) -> (&'static str, Value) {
    let number = json!(dice.roll(5) as i64 - 2);
    let count = json!(dice.roll(3));
    let leaf = dice.roll(if depth == 0 { 16 } else { 43 });
    match leaf {
        0..=3 => (
            "type",
            json!(dice.pick(&[
                "null", "boolean", "integer", "number", "string", "array", "object"
            ])),
        ),
        4 => ("minimum", number),
        5 => ("maximum", number),
        6 => (
            "multipleOf",
            dice.pick(&[json!(1), json!(2), json!(3), json!(0.5)]).clone(),
        ),
        7 => ("minLength", count),
        8 => ("maxLength", count),
        9 => ("pattern", json!(dice.pick(&["^a", "b$", "^[ab]*$", "a.?b"]))),
        10 => ("required", json!([dice.pick::<&str>(&KEYS)])),
        11 => (
            "enum",
            json!([instance(dice, 1), instance(dice, 0), instance(dice, 0)]),
        ),
        12 => (
            *dice.pick(&["minItems", "maxItems", "minProperties", "maxProperties"]),
            count,
        ),
        13 => (*dice.pick(&["exclusiveMinimum", "exclusiveMaximum"]), number),
        14 => ("const", instance(dice, 1)),
        15 if dice.roll(4) > 0 => ("uniqueItems", json!(true)),
        15 => ("not", json!({"uniqueItems": true})),
        16 | 17 => {
            let keys = (0..1 + dice.roll(2))
                .map(|_| (dice.pick::<&str>(&KEYS).to_string(), schema(dice, depth - 1)));
            ("properties", Value::Object(keys.collect()))
        }
        18 => ("additionalProperties", schema(dice, depth - 1)),
        19 => (
            "patternProperties",
            object(dice.pick::<&str>(&["^a", "b$"]), schema(dice, depth - 1)),
        ),
        20 | 21 => ("items", schema(dice, depth - 1)),
        22 => ("prefixItems", schemas(dice, depth - 1)),
        23 => ("anyOf", schemas(dice, depth - 1)),
        24 => ("allOf", schemas(dice, depth - 1)),
        25 => ("oneOf", schemas(dice, depth - 1)),
        26 => ("not", schema(dice, depth - 1)),
        27 => ("contains", schema(dice, depth - 1)),
        28 => ("propertyNames", schema(dice, 0)),
        29 | 30 => ("unevaluatedProperties", schema(dice, depth - 1)),
        31 => ("unevaluatedItems", schema(dice, depth - 1)),
        32 => ("if", schema(dice, depth - 1)),
        33 | 34 => ("then", schema(dice, depth - 1)),
        35 => ("else", schema(dice, depth - 1)),
        36 => (
            "dependentSchemas",
            object(dice.pick::<&str>(&KEYS), schema(dice, depth - 1)),
        ),
        37 => (*dice.pick(&["minContains", "maxContains"]), count),
        38 | 39 => ("$ref", json!(dice.pick(&["#/$defs/x", "#/$defs/y"]))),
        // What holds of the value also holds of its parts: of all that they are, if the root says so.
        40 => ("$ref", json!(TREE)),
        41 => (
            "dependentRequired",
            object(dice.pick::<&str>(&KEYS), json!(["a", "c"])),
        ),
        _ => (
            "dependentRequired",
            object(dice.pick::<&str>(&KEYS), json!([dice.pick::<&str>(&KEYS)])),
        ),
    }
}

pub(crate) fn instance(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(if depth == 0 { 5 } else { 9 }) {
        0 => Value::Null,
        1 => json!(dice.roll(2) == 0),
        2 => json!(dice.roll(7) as i64 - 3),
        3 => serde_json::from_str(dice.pick::<&str>(&["0.5", "-1.5", "2.0"])).expect("a number"),
        4 => json!(dice.pick(&["", "a", "b", "ab", "acb", "ba", "c"])),
        5 | 6 => Value::Array((0..dice.roll(4)).map(|_| instance(dice, depth - 1)).collect()),
        _ => {
            let keys =
                (0..dice.roll(4)).map(|_| (dice.pick::<&str>(&KEYS).to_string(), instance(dice, depth - 1)));
            Value::Object(keys.collect())
        }
    }
}

pub(crate) fn compiler() -> Compiler {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let tokens: Vec<_> = std::iter::once(eos)
        .chain((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])))
        .collect();
    Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")))
}

/// A grammar, and whether less is allowed than the schema says.
pub(crate) fn compile(compiler: &Compiler, schema: &Value) -> Result<(Grammar, bool), CompileError> {
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    // The other validator takes formats for annotations, as the specification has it.
    options.schema.formats = Formats::Annotate;
    let (grammar, found) = compiler.compile(Source::JsonSchema(&schema.to_string()), &options)?;
    Ok((grammar, is_narrower(&found)))
}

fn is_narrower(found: &Diagnostics) -> bool {
    let mut findings = found.findings.iter();
    findings.any(|finding| finding.kind == ProblemKind::Narrowed)
}

/// Whether the text of a value belongs to a grammar.
pub(crate) fn accepts(grammar: &Grammar, value: &Value) -> bool {
    let end = grammar.step_bytes(grammar.start(), value.to_string().as_bytes());
    end.is_some_and(|state| grammar.is_accepting(state))
}

/// Whether a value is accepted, which it is if it is valid, and only then; a grammar that says it is narrower
/// may refuse it.
pub(crate) fn judged_alike(
    (grammar, narrower): (&Grammar, bool),
    value: &Value,
    (judge, schema): (&jsonschema::Validator, &Value),
) -> bool {
    let (accepted, valid) = (accepts(grammar, value), judge.is_valid(value));
    assert!(
        accepted == valid || valid && (narrower || accepts_plain(grammar, value)),
        "{schema} and {value}, valid: {valid}"
    );
    accepted
}

/// The same in another spelling of its numbers: whole ones without a fraction. Among items that are compared,
/// each number has this spelling alone.
pub(crate) fn accepts_plain(grammar: &Grammar, value: &Value) -> bool {
    accepts(grammar, &plainly(value))
}

fn plainly(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => json!(whole as i64),
            _ => value.clone(),
        },
        Value::Array(list) => list.iter().map(plainly).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), plainly(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// A schema with definitions that its references lead to.
pub(crate) fn whole_schema(dice: &mut Dice, depth: usize) -> Value {
    let mut root = schema(dice, depth);
    if let Value::Object(map) = &mut root {
        map.insert("$defs".to_owned(), definitions(plain(dice), plain(dice)));
        if dice.roll(2) == 0 {
            map.insert("$id".to_owned(), json!("https://example.com/root"));
            map.insert("$dynamicAnchor".to_owned(), json!("node"));
        }
    }
    root
}

/// The schema of nested values, each of which is such a value again, or what the root says in its place.
const TREE: &str = "https://example.com/tree";

/// What references lead to.
pub(crate) fn definitions(x: Value, y: Value) -> Value {
    json!({"x": x, "y": y, "tree": {
        "$id": TREE,
        "$dynamicAnchor": "node",
        "properties": {"a": {"$dynamicRef": "#node"}, "c": {"$ref": "#"}},
        "items": {"$dynamicRef": "#node"},
    }})
}

/// So many cases, or as many as the environment asks for, as it does of proptest.
pub(crate) fn cases(usual: usize) -> usize {
    let wanted = std::env::var("PROPTEST_CASES").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A schema without references.
fn plain(dice: &mut Dice) -> Value {
    schema(dice, 0)
}
