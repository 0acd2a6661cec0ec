//! The grammar of the spans of a text: among all short texts, it accepts the spans and nothing else.

use std::sync::Arc;

use lexiform::Grammar;
use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_automata::mask::Tables;
use lexiform_syntax::notation::extract::{Boundary, is_span, lower};

fn grammar(text: &str, boundary: Boundary, tokens: &[&str]) -> Grammar {
    let mut kinded: Vec<(TokenKind, Vec<u8>)> = (0..=255).map(|byte| (TokenKind::Text, vec![byte])).collect();
    kinded.extend(
        tokens
            .iter()
            .map(|token| (TokenKind::Text, token.as_bytes().to_vec())),
    );
    kinded.push((TokenKind::Special, b"<end>".to_vec()));
    let end = kinded.len() as u32 - 1;
    let vocabulary = Arc::new(Vocabulary::new(&kinded, &[end]).expect("tokens"));
    let limits = Limits::default();
    let cfg = lower(text, boundary, &limits).expect("it has spans");
    let tables = Arc::new(Tables::new(vocabulary, 1 << 24));
    Grammar::new(&cfg, &tables, &limits).expect("it compiles")
}

/// Returns all texts of at most this many letters.
fn texts(letters: &[char], longest: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..longest {
        let longer = |text: &String| {
            letters
                .iter()
                .map(|letter| format!("{text}{letter}"))
                .collect::<Vec<_>>()
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

#[test]
fn the_language_is_that_of_all_spans() {
    let letters = ['a', 'b', ' ', '.', 'é'];
    let candidates = texts(&letters, 5);
    for text in [
        "a",
        "ab ab",
        "a b a  b a.",
        " aab.é a\tb",
        "é éa ab",
        "a.a.a.b b.a",
    ] {
        for boundary in [Boundary::Word, Boundary::Character] {
            let grammar = grammar(text, boundary, &[]);
            for candidate in &candidates {
                let end = grammar.step_bytes(grammar.start(), candidate.as_bytes());
                let is_taken = end.is_some_and(|state| grammar.is_accepting(state));
                let expected = is_span(candidate, text, boundary);
                assert_eq!(is_taken, expected, "{candidate:?} of {text:?} at {boundary:?}");
                // Every beginning of a span, and nothing else, can be gone on from.
                let begins =
                    |span: &&String| span.starts_with(candidate.as_str()) && is_span(span, text, boundary);
                assert!(
                    end.is_some() || !candidates.iter().any(|span| begins(&span)),
                    "{candidate:?}"
                );
            }
        }
    }
}

#[test]
fn masks_hold_the_tokens_that_stand_in_the_text() {
    let tokens = ["the", " fox", " dog", " quick", "x ju", "cat", "th"];
    let grammar = grammar("the quick fox jumps over the dog", Boundary::Word, &tokens);
    let allowed = |written: &str| {
        let state = grammar
            .step_bytes(grammar.start(), written.as_bytes())
            .expect("a beginning");
        let mask = grammar.mask(state);
        let longer = tokens
            .iter()
            .zip(256..)
            .filter(|(_, token)| mask.contains(*token));
        longer.map(|(text, _)| *text).collect::<Vec<_>>()
    };
    assert_eq!(allowed(""), ["the", "th"]);
    assert_eq!(allowed("the"), [" dog", " quick"]);
    assert_eq!(allowed("quick"), [" fox"]);
    assert_eq!(allowed("fo"), ["x ju"]);
    assert_eq!(allowed("the dog"), [""; 0]);
}

#[test]
fn a_long_text_is_linear() {
    let words: Vec<String> = (0..8_000_u64)
        .map(|number| format!("w{}", number * 7919 % 3001))
        .collect();
    let text = words.join(" ");
    let grammar = grammar(&text, Boundary::Word, &[]);
    let span = words[4000..4040].join(" ");
    let end = grammar.step_bytes(grammar.start(), span.as_bytes());
    assert!(end.is_some_and(|state| grammar.is_accepting(state)));
    assert_eq!(grammar.step_bytes(grammar.start(), b"w1 w1 w"), None);
}

#[test]
fn what_has_no_spans_or_too_many_is_refused() {
    let limits = Limits::default();
    let said = |text: &str| {
        lower(text, Boundary::Word, &limits)
            .expect_err("refused")
            .to_string()
    };
    assert!(said(" \n").contains("no visible character"));
    assert!(said(&"a".repeat(limits.source_bytes + 1)).contains("source_bytes"));
}
