//! The shortest loop around a grammar: compute a mask, choose an allowed token, take the step.
//!
//! `cargo run --example mask_loop` writes one text of a schema. It takes the first allowed token at each
//! step, where a model would choose.

use std::sync::Arc;

use lexiform::schema::Whitespace;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{MaskRequest, Options, Source, compile};

const SCHEMA: &str = r#"{"type": "object", "properties": {"ok": {"type": "boolean"}, "count": {"type": "integer"}},
    "required": ["ok", "count"], "additionalProperties": false}"#;

/// Returns a vocabulary of an end token and every ASCII character. A real vocabulary comes from
/// `vocab::Tokenizer`.
fn vocabulary() -> Result<Vocabulary, lexiform::vocab::VocabularyError> {
    let mut tokens = vec![(TokenKind::Special, b"<end>".to_vec())];
    tokens.extend((0..=127).map(|byte| (TokenKind::Text, vec![byte])));
    Vocabulary::new(&tokens, &[0])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vocabulary = Arc::new(vocabulary()?);
    let mut options = Options::default();
    options.schema.whitespace = Whitespace::Compact;
    let (grammar, _notes) = compile(Source::JsonSchema(SCHEMA), &vocabulary, &options)?;

    let mut state = grammar.start();
    let mut text = Vec::new();
    for written in 0.. {
        // Without a budget the loop would write digits forever. With one, every text is complete in time.
        let mask = grammar.try_mask(MaskRequest::from(state).within(40 - written))?;
        let token = mask.iter().next().ok_or("a budget below the shortest text")?;
        state = grammar.step(state, token).ok_or("the mask allowed it")?;
        if grammar.is_finished(state) {
            break;
        }
        text.extend_from_slice(vocabulary.bytes(token));
    }
    println!("{}", String::from_utf8(text)?);
    Ok(())
}
