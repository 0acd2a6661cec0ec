//! Tests the relation of a projection on drawn texts, where the algebra of schemas cannot decide it.
//!
//! ```text
//!   schema ──draw──► value ──► is it a value of the restored answers?        (equal, wider)
//!   target ──draw──► answer ─restore─► value ──► is it a value of the schema? (equal, narrower)
//! ```
//!
//! Texts are drawn byte by byte from the compiled schemas, so both directions use the masks of the engine
//! and nothing of what wrote the projection.

use std::sync::Arc;

use serde_json::Value;

use crate::compile::{Compiler, Options as CompileOptions, Source};
use crate::error::CompileError;
use crate::limits::Limits;
use crate::project::{Projection, Relation};
use crate::schema::{AdditionalProperties, KeyOrder, Numbers, Options};
use crate::vocab::{TokenKind, Vocabulary};
use lexiform_automata::matcher::{Grammar, MaskRequest};

/// What a test on drawn values found.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tested {
    /// The values that were drawn from the schema.
    pub values: usize,
    /// The answers that were drawn from the schema of the target.
    pub answers: usize,
    /// Of the answers, those whose restored value the schema allows.
    pub valid: usize,
    /// What contradicts the relation.
    pub contradictions: Vec<Contradiction>,
}

/// A drawn value that contradicts the relation of a projection.
#[derive(Clone, Debug, PartialEq)]
pub enum Contradiction {
    /// The schema allows this value, and no answer is restored to it.
    Missing(Value),
    /// The target allows this answer, and the schema does not allow what it is restored to.
    Wrong(Value),
    /// The target allows this answer, and it cannot be restored.
    NotRestored(Value, String),
}

/// The most bytes that a drawn text takes beyond the shortest.
const FURTHER: usize = 160;

/// Tests a projection of a schema on so many texts drawn from each side, by a seed.
///
/// # Errors
/// Fails if a schema does not compile.
pub fn tested(
    schema: &str,
    projection: &Projection,
    options: &Options,
    limits: &Limits,
    draws: usize,
    seed: u64,
) -> Result<Tested, CompileError> {
    let compiler = compiler_of_bytes();
    let written = Options {
        additional_properties: AdditionalProperties::Specified,
        ..options.clone()
    };
    let judged = |options: &Options| Options {
        key_order: KeyOrder::Any,
        numbers: Numbers::Any,
        ..options.clone()
    };
    let compile = |schema: &str, options: Options| {
        let options = CompileOptions {
            schema: options,
            limits: limits.clone(),
            ..CompileOptions::default()
        };
        Ok::<_, CompileError>(compiler.compile(Source::JsonSchema(schema), &options)?.0)
    };
    let (target, restored) = (
        projection.schema().to_string(),
        projection.restored_schema().to_string(),
    );
    let (source, answers) = (
        compile(schema, options.clone())?,
        compile(&target, written.clone())?,
    );
    let (within, among) = (
        compile(schema, judged(options))?,
        compile(&restored, judged(&written))?,
    );
    let mut dice = Dice(seed | 1);
    let mut tested = Tested::default();
    for _ in 0..draws {
        if let Some(value) = dice.value(&source) {
            tested.values += 1;
            let may_miss = matches!(projection.relation(), Relation::Narrower | Relation::Neither);
            if !may_miss && !accepts(&among, &value) {
                tested.contradictions.push(Contradiction::Missing(value));
            }
        }
        if let Some(answer) = dice.value(&answers) {
            tested.answer(projection, answer, &within, limits);
        }
    }
    Ok(tested)
}

impl Tested {
    fn answer(&mut self, projection: &Projection, answer: Value, within: &Grammar, limits: &Limits) {
        self.answers += 1;
        let may_be_wrong = matches!(projection.relation(), Relation::Wider | Relation::Neither);
        match projection.restore(answer.clone(), limits) {
            Ok(value) if accepts(within, &value) => self.valid += 1,
            Ok(_) if may_be_wrong || has_free_text(projection) => {}
            Ok(_) => self.contradictions.push(Contradiction::Wrong(answer)),
            // A string that holds JSON text is any string to the target, and so are keys that come twice.
            Err(_) if !projection.recodings().is_empty() => {}
            Err(error) => {
                let problem = Contradiction::NotRestored(answer, error.to_string());
                self.contradictions.push(problem);
            }
        }
    }
}

/// Returns `true` if some part is a string with JSON text, in which a target may write anything.
fn has_free_text(projection: &Projection) -> bool {
    projection.recodings().iter().any(|recoding| recoding.is_text)
}

/// Returns `true` if a grammar has a value, as it was drawn or with its numbers spelled plainly: where
/// numbers are compared, `0e+250` is left out, and 0 is not.
fn accepts(grammar: &Grammar, value: &Value) -> bool {
    let has = |text: &str| {
        let end = grammar.step_bytes(grammar.start(), text.as_bytes());
        end.is_some_and(|state| grammar.is_accepting(state))
    };
    let mut plain = String::new();
    write_plainly(value, &mut plain);
    has(&value.to_string()) || has(&plain)
}

fn write_plainly(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => out.push_str(&plain_number(&number.to_string())),
        Value::Array(list) => {
            for (place, item) in list.iter().enumerate() {
                out.push_str(if place == 0 { "[" } else { "," });
                write_plainly(item, out);
            }
            out.push_str(if list.is_empty() { "[]" } else { "]" });
        }
        Value::Object(map) => {
            for (place, (key, item)) in map.iter().enumerate() {
                out.push_str(if place == 0 { "{" } else { "," });
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_plainly(item, out);
            }
            out.push_str(if map.is_empty() { "{}" } else { "}" });
        }
        other => out.push_str(&other.to_string()),
    }
}

/// The most digits of a number without an exponent.
const PLAIN_DIGITS: usize = 1100;

/// Returns a number of JSON without an exponent and without zeros at its end; a number that takes too many
/// digits for that stays as it is.
fn plain_number(text: &str) -> String {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    let Ok(exponent) = exponent.parse::<isize>() else {
        return text.to_owned();
    };
    // The number of digits before the point, counted from the first that is not 0.
    let point = (whole.len() as isize - leading as isize).saturating_add(exponent);
    if point.unsigned_abs() > PLAIN_DIGITS {
        return text.to_owned();
    }
    match usize::try_from(point) {
        Ok(point) if point >= digits.len() => format!("{sign}{digits:0<point$}"),
        Ok(point) if point > 0 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
        _ => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs())),
    }
}

/// A vocabulary of the 256 bytes, and the end of texts.
fn compiler_of_bytes() -> Compiler {
    let end = (TokenKind::Text, b"<end>".to_vec());
    let bytes = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte]));
    let tokens: Vec<_> = std::iter::once(end).chain(bytes).collect();
    let vocabulary = Vocabulary::new(&tokens, &[0]).expect("the bytes and one end form a vocabulary");
    Compiler::new(Arc::new(vocabulary))
}

/// A generator of pseudo-random numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides.max(1)
    }

    /// Draws a text of a grammar, and reads it as JSON.
    fn value(&mut self, grammar: &Grammar) -> Option<Value> {
        let mut state = grammar.start();
        let mut left = grammar.min_completion(state)? + self.roll(FURTHER);
        let mut text = Vec::new();
        loop {
            let mask = grammar.try_mask(MaskRequest::from(state).within(left)).ok()?;
            // Letters and digits rather than control characters, where there is a choice.
            let tokens: Vec<u32> = mask.iter().collect();
            let plain: Vec<u32> = tokens.iter().copied().filter(|&token| token < 128).collect();
            let tokens = if plain.is_empty() { &tokens } else { &plain };
            let token = *tokens.get(self.roll(tokens.len()))?;
            if token == 0 {
                return serde_json::from_slice(&text).ok();
            }
            text.push((token - 1) as u8);
            state = grammar.step(state, token)?;
            left = left.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_without_exponents() {
        let table = [
            ("112e+82", format!("112{}", "0".repeat(82))),
            ("1.5e1", "15".to_owned()),
            ("-1.25E1", "-12.5".to_owned()),
            ("34.0", "34".to_owned()),
            ("0e+250", "0".to_owned()),
            ("-0.00", "0".to_owned()),
            ("12e-4", "0.0012".to_owned()),
            ("0.5", "0.5".to_owned()),
            ("100", "100".to_owned()),
            ("1e1200", "1e1200".to_owned()),
            ("1e99999999999999999999", "1e99999999999999999999".to_owned()),
        ];
        for (text, expected) in table {
            assert_eq!(plain_number(text), expected, "{text}");
        }
        let mut plain = String::new();
        let value = serde_json::json!({"a": [1.5, [], {}], "b\"": "1e2"});
        write_plainly(&value, &mut plain);
        assert_eq!(serde_json::from_str::<Value>(&plain).expect("JSON"), value);
    }
}
