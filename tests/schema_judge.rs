//! Random schemas against an independent validator, in both directions: whatever the masks lead to is valid, and a
//! text is accepted exactly where its value is valid.
//!
//! Schemas, walks and instances come from a small generator with a fixed seed, so a failure repeats itself; the
//! message holds the schema.

use std::sync::Arc;

use lexiform::compile::{Compiler, Options, Source};
use lexiform::error::ProblemKind;
use lexiform::schema::KeyOrder;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{CompileError, Grammar};
use serde_json::{Value, json};

/// A generator of pseudo-random numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.roll(list.len())]
    }
}

/// Whether the text has a number with more digits than the judge, which computes in doubles, can tell apart. The
/// specification means exact numbers, and so do the masks.
fn is_beyond_doubles(text: &str) -> bool {
    let digits = |run: &str| run.bytes().filter(u8::is_ascii_digit).count();
    text.split(|c: char| !c.is_ascii_digit() && c != '.')
        .any(|run| digits(run) > 15)
}

const KEYS: [&str; 4] = ["a", "b", "ab", "c"];

fn schema(dice: &mut Dice, depth: usize) -> Value {
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

fn schemas(dice: &mut Dice, depth: usize) -> Value {
    let count = 1 + dice.roll(3);
    Value::Array((0..count).map(|_| schema(dice, depth)).collect())
}

fn object(key: &str, value: Value) -> Value {
    Value::Object([(key.to_owned(), value)].into_iter().collect())
}

fn keyword(dice: &mut Dice, depth: usize) -> (&'static str, Value) {
    let number = json!(dice.roll(5) as i64 - 2);
    let count = json!(dice.roll(3));
    let leaf = dice.roll(if depth == 0 { 13 } else { 31 });
    match leaf {
        0..=3 => (
            "type",
            json!(dice.pick(&[
                "null", "boolean", "integer", "number", "string", "array", "object"
            ])),
        ),
        4 => ("minimum", number),
        5 => ("maximum", number),
        6 => ("multipleOf", json!(1 + dice.roll(3))),
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
        13 | 14 => {
            let keys = (0..1 + dice.roll(2))
                .map(|_| (dice.pick::<&str>(&KEYS).to_string(), schema(dice, depth - 1)));
            ("properties", Value::Object(keys.collect()))
        }
        15 => ("additionalProperties", schema(dice, depth - 1)),
        16 => (
            "patternProperties",
            object(dice.pick::<&str>(&["^a", "b$"]), schema(dice, depth - 1)),
        ),
        17 | 18 => ("items", schema(dice, depth - 1)),
        19 => ("prefixItems", schemas(dice, depth - 1)),
        20 => ("anyOf", schemas(dice, depth - 1)),
        21 => ("allOf", schemas(dice, depth - 1)),
        22 => ("oneOf", schemas(dice, depth - 1)),
        23 => ("not", schema(dice, depth - 1)),
        24 => ("contains", schema(dice, depth - 1)),
        25 => ("propertyNames", schema(dice, 0)),
        26 | 27 => ("unevaluatedProperties", schema(dice, depth - 1)),
        28 => ("unevaluatedItems", schema(dice, depth - 1)),
        29 => ("if", schema(dice, depth - 1)),
        _ => (
            "dependentRequired",
            object(dice.pick::<&str>(&KEYS), json!([dice.pick::<&str>(&KEYS)])),
        ),
    }
}

fn instance(dice: &mut Dice, depth: usize) -> Value {
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

fn compiler() -> Compiler {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let tokens: Vec<_> = std::iter::once(eos)
        .chain((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])))
        .collect();
    Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")))
}

fn compile(compiler: &Compiler, schema: &Value) -> Result<Grammar, CompileError> {
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    compiler
        .compile(Source::JsonSchema(&schema.to_string()), &options)
        .map(|(grammar, _)| grammar)
}

/// Walks through masks with random choices; `None` where no end came in sight. The longer the walk, the more it is drawn to
/// bytes that close something.
fn walk(grammar: &Grammar, dice: &mut Dice) -> Option<String> {
    let mut state = grammar.start();
    let mut text = Vec::new();
    for step in 0..400 {
        let mask = grammar.mask(state);
        let allowed: Vec<u32> = mask.iter().collect();
        assert!(
            !allowed.is_empty(),
            "a dead end behind {:?}",
            String::from_utf8_lossy(&text)
        );
        let closing: Vec<u32> = allowed
            .iter()
            .copied()
            .filter(|token| is_closing(*token))
            .collect();
        let token = if !closing.is_empty() && dice.roll(60) < 10 + step {
            *dice.pick(&closing)
        } else {
            *dice.pick(&allowed)
        };
        if token == 0 {
            return Some(String::from_utf8(text).expect("the masks lead to UTF-8"));
        }
        text.push((token - 1) as u8);
        state = grammar
            .step(state, token)
            .expect("a token of the mask is allowed");
    }
    None
}

fn is_closing(token: u32) -> bool {
    token == 0 || b"\"]}".contains(&((token - 1) as u8))
}

#[test]
fn masks_lead_to_valid_values_and_valid_values_are_accepted() {
    let (mut dice, compiler) = (Dice(0x5eed_1234_5678_9abc), compiler());
    let (mut compiled, mut walked, mut refused) = (0, 0, 0);
    for _ in 0..600 {
        let schema = schema(&mut dice, 2);
        let judge = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let grammar = match compile(&compiler, &schema) {
            Ok(grammar) => grammar,
            Err(error) => {
                check_refusal(&error, &schema, &judge, &mut dice);
                refused += 1;
                continue;
            }
        };
        compiled += 1;
        for _ in 0..3 {
            if let Some(text) = walk(&grammar, &mut dice) {
                walked += 1;
                let value: Value = serde_json::from_str(&text).expect("the masks lead to JSON");
                if is_beyond_doubles(&text) {
                    continue;
                }
                assert!(judge.is_valid(&value), "{schema} does not allow {text}");
            }
        }
        for _ in 0..20 {
            let value = instance(&mut dice, 2);
            let end = grammar.step_bytes(grammar.start(), value.to_string().as_bytes());
            let accepted = end.is_some_and(|state| grammar.is_accepting(state));
            assert_eq!(accepted, judge.is_valid(&value), "{schema} and {value}");
        }
    }
    assert!(
        compiled > 400 && walked > 800,
        "{compiled} compiled, {refused} refused, {walked} walked"
    );
}

/// A schema is refused because it is not supported, or because nothing satisfies it.
fn check_refusal(error: &CompileError, schema: &Value, judge: &jsonschema::Validator, dice: &mut Dice) {
    for problem in &error.problems {
        match problem.kind {
            ProblemKind::Unsupported | ProblemKind::Limit => return,
            ProblemKind::Unsatisfiable => {}
            _ => panic!("{schema}: {problem}"),
        }
    }
    for _ in 0..50 {
        let value = instance(dice, 2);
        assert!(!judge.is_valid(&value), "{schema} allows {value}, but: {error}");
    }
}
