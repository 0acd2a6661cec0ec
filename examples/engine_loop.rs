//! The loop of an inference engine: many sequences, one buffer of masks for all of them, and drafts that are
//! checked in one call.
//!
//! `cargo run --example engine_loop` runs it with a scripted model, which proposes the letters of a fixed
//! text.

use std::sync::Arc;

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Pool, Session, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut tokens = vec![(TokenKind::Special, b"<end>".to_vec())];
    tokens.extend((0..=127).map(|byte| (TokenKind::Text, vec![byte])));
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0])?);

    // One compiler per vocabulary: its grammars share everything that does not depend on a grammar.
    let compiler = Compiler::new(vocabulary.clone());
    let sources = [
        Source::Regex("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
        Source::JsonSchema(r#"{"enum": ["yes", "no"]}"#),
    ];
    let mut sessions = Vec::new();
    for source in sources {
        let (grammar, _notes) = compiler.compile(source, &Options::default())?;
        sessions.push(Session::new(grammar, None));
    }

    // The masks of the batch are rows of one buffer, with 32 tokens per word. The process id lets the pool
    // detect a fork.
    let pool = Pool::new(2, std::process::id);
    let stride = vocabulary.len().div_ceil(32);
    let mut words = vec![0_u32; sessions.len() * stride];
    let wishes: [&[u8]; 2] = [b"2026-11-27", b"\"no\""];
    while sessions.iter().any(|session| !session.is_terminated()) {
        let rows: Vec<_> = sessions
            .iter()
            .map(|session| (!session.is_terminated()).then(|| session.row(None)))
            .collect();
        let refused = pool.fill_batch(&rows, stride, &mut words);
        assert!(refused.is_empty(), "every mask is within the limits: {refused:?}");

        for (number, session) in sessions.iter_mut().enumerate() {
            if session.is_terminated() {
                continue;
            }
            let mask = &words[number * stride..][..stride];
            let allows = |token: u32| mask[token as usize / 32] >> (token % 32) & 1 == 1;
            // The token that the model would choose next, with the two tokens after it as a draft.
            let written = session.tokens().len();
            let rest = wishes[number].get(written..).unwrap_or_default();
            let draft: Vec<u32> = rest.iter().take(3).map(|byte| u32::from(*byte) + 1).collect();
            let draft = if draft.is_empty() { vec![0] } else { draft };
            assert!(allows(draft[0]), "the model keeps to its mask");
            let accepted = session.validate(&draft);
            session.accept(&draft[..accepted])?;
        }
    }
    for session in &sessions {
        let text = session.tokens().iter().filter(|token| **token > 0);
        let text: Vec<u8> = text.flat_map(|token| vocabulary.bytes(*token)).copied().collect();
        println!("{}", String::from_utf8(text)?);
    }
    Ok(())
}
