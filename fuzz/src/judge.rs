//! Small schemas over all keywords against the `jsonschema` crate, in both directions: what masks lead to is
//! valid, and values are accepted exactly where they are valid.

#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../../tests/sources/random.rs"]
mod random;

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::ProblemKind;
use random::Dice;
use serde_json::Value;

use crate::clock::{COMPILE, within};
use crate::walk::Choices;

/// The schema that an input is read as.
///
/// The dice of the tests take eight bytes and roll on from there; an input chooses them for each keyword at
/// the top anew, so that parts of it matter for parts of the schema.
fn schema(input: &[u8]) -> Value {
    let mut parts = input.chunks(4).take(6);
    let mut dice = |salt: u64| {
        let bytes = parts.next().unwrap_or_default();
        let seed = bytes.iter().fold(salt, |seed, &byte| seed << 8 | u64::from(byte));
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    };
    let mut schema = random::whole_schema(&mut dice(1), 2);
    if let Value::Object(map) = &mut schema {
        for part in 0..input.len().div_ceil(4).saturating_sub(1).min(5) {
            let (key, value) = random::keyword(&mut dice(part as u64 + 2), 2);
            map.insert(key.to_owned(), value);
        }
    }
    schema
}

/// The schema as text.
pub fn shown(input: &[u8]) -> String {
    schema(input).to_string()
}

/// Compares the grammar of a schema with a validator.
pub fn run(input: &[u8]) {
    let schema = schema(input);
    let Ok(judge) = jsonschema::draft202012::new(&schema) else {
        return;
    };
    let compiler = random::compiler();
    let compiled = within(COMPILE, "a compile", || random::compile(&compiler, &schema));
    let mut dice = Dice(0x5eed_1234_5678_9abc);
    let values = (0..30).map(|_| random::instance(&mut dice, 2));
    match compiled {
        Err(error) => values.for_each(|value| check_refusal(&error, &schema, &judge, &value)),
        Ok((grammar, narrower)) => {
            for value in values {
                random::judged_alike((&grammar, narrower), &value, (&judge, &schema));
            }
            check_texts(&grammar, &schema, &judge);
        }
    }
}

fn check_refusal(error: &CompileError, schema: &Value, judge: &jsonschema::Validator, value: &Value) {
    let is_empty = error
        .problems
        .iter()
        .all(|it| it.kind == ProblemKind::Unsatisfiable);
    assert!(
        !is_empty || !judge.is_valid(value),
        "finding: {schema} allows {value}, but: {error}"
    );
}

/// Texts that the masks lead to are valid.
fn check_texts(grammar: &Grammar, schema: &Value, judge: &jsonschema::Validator) {
    let mut choices = Choices::of(schema.to_string());
    for _ in 0..3 {
        let Some(text) = text(grammar, &mut choices) else {
            continue;
        };
        let value: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("finding: {schema} leads to {text}: {error}"));
        // The judge computes in doubles.
        let is_long = text
            .split(|it: char| !it.is_ascii_digit() && it != '.')
            .any(|run| run.len() > 15);
        assert!(
            is_long || judge.is_valid(&value),
            "finding: {schema} does not allow {text}"
        );
    }
}

/// A whole text by random masks, which is drawn to what closes; none where no end came in sight.
fn text(grammar: &Grammar, choices: &mut Choices) -> Option<String> {
    let (mut state, mut text) = (grammar.start(), Vec::new());
    for step in 0..300 {
        let allowed: Vec<u32> = grammar.mask(state).iter().collect();
        let closing = |token: &u32| *token == 0 || b"\"]}".contains(&((*token - 1) as u8));
        let ends: Vec<u32> = allowed.iter().copied().filter(closing).collect();
        let some = if !ends.is_empty() && choices.roll(60) < 10 + step {
            &ends
        } else {
            &allowed
        };
        let token = *some.get(choices.roll(some.len()))?;
        if token == 0 {
            return String::from_utf8(text).ok();
        }
        text.push((token - 1) as u8);
        state = grammar.step(state, token)?;
    }
    None
}
