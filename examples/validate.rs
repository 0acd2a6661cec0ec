//! Checks a text against a grammar without a model: whether it belongs, where it deviates, and the nearest
//! text that belongs.
//!
//! `cargo run --example validate`

use std::sync::Arc;

use lexiform::repair::{Costs, Repair, RepairLimits};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Options, Source, compile};

const SCHEMA: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"], "additionalProperties": false}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Texts are read as bytes, so any vocabulary will do.
    let vocabulary = Arc::new(Vocabulary::new(&[(TokenKind::Special, "<end>")], &[0])?);

    // An invalid schema is an error with all its problems and their places.
    let broken = r#"{"type": "objct", "required": "name"}"#;
    if let Err(error) = compile(Source::JsonSchema(broken), &vocabulary, &Options::default()) {
        error.problems.iter().for_each(|problem| println!("{problem}"));
    }

    let (grammar, _notes) = compile(Source::JsonSchema(SCHEMA), &vocabulary, &Options::default())?;
    for text in [r#"{"name": "Ada", "age": 36}"#, r#"{"name": "Ada", "age": "36"}"#] {
        let is_prefix = |length: &usize| {
            grammar
                .step_bytes(grammar.start(), &text.as_bytes()[..*length])
                .is_some()
        };
        let longest = (0..=text.len()).take_while(is_prefix).last().unwrap_or(0);
        let end = grammar.step_bytes(grammar.start(), text.as_bytes());
        if end.is_some_and(|state| grammar.is_accepting(state)) {
            println!("{text} belongs");
        } else {
            let repair = Repair::of_text(&grammar, text, &Costs::default(), &RepairLimits::default())?;
            println!(
                "{text} leaves at byte {longest}; the nearest that belongs is {}",
                repair.text
            );
        }
    }
    Ok(())
}
