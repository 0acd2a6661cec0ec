//! Vocabularies that cannot write every text: a token may come where tokens complete the text after it, and
//! nowhere else.

use std::collections::HashSet;
use std::sync::Arc;

use lexiform::error::ProblemKind;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Options, Source, compile};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::regular::{self, Re};
use super::{BYTES, cases, lower};

/// The most states at which masks are compared.
const STATES: usize = 40;

/// Random words of these bytes, with and without words of a single byte.
fn words() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let word = prop::collection::vec(prop::sample::select(BYTES.to_vec()), 1..=3);
    prop::collection::vec(word, 1..6)
}

fn vocabulary(words: &[Vec<u8>]) -> Arc<Vocabulary> {
    let words = words.iter().map(|word| (TokenKind::Text, word.clone()));
    let tokens: Vec<_> = words.chain([(TokenKind::Special, b"<end>".to_vec())]).collect();
    let end = tokens.len() as u32 - 1;
    Arc::new(Vocabulary::new(&tokens, &[end]).expect("a vocabulary"))
}

/// Compares all masks that token sequences reach with a search among all token sequences.
fn check(language: &Re, grammar: &lexiform::Grammar, words: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let mut open = vec![(grammar.start(), language.clone())];
    let mut seen = HashSet::new();
    while let Some((state, rest)) = open.pop() {
        if seen.len() >= STATES || !seen.insert(state) {
            continue;
        }
        let mask = grammar.mask(state);
        prop_assert!(mask.count() > 0, "no dead end is reached");
        for (token, word) in (0..).zip(words) {
            let after = rest.rest(word);
            let Some(expected) = after.is_spelled_by(words) else {
                return Ok(());
            };
            let place = || format!("{:?} before {after:?}", word.escape_ascii().to_string());
            prop_assert_eq!(mask.contains(token), expected, "mask, {}", place());
            let next = grammar.step(state, token);
            prop_assert_eq!(next.is_some(), expected, "step, {}", place());
            open.extend(next.map(|next| (next, after)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_token_may_come_if_tokens_complete_the_text(pattern in regular::patterns(), words in words()) {
        let language = pattern.language();
        for cfg in [lower::terminal(&pattern), lower::expressions(&pattern)] {
            match (lower::compile(&cfg, &vocabulary(&words)), language.is_spelled_by(&words)) {
                (_, None) => {}
                (Ok(grammar), Some(true)) => check(&language, &grammar, &words)?,
                (Err(error), Some(false)) => {
                    prop_assert_eq!(error.problems[0].kind, ProblemKind::Unsatisfiable);
                }
                (compiled, spelled) => {
                    prop_assert!(false, "spelled {:?}, but {:?}", spelled, compiled.err());
                }
            }
        }
    }
}

/// Returns the first mask over these tokens, the end token last, or the problem of the compile.
fn first_mask(source: Source<'_>, tokens: &[&[u8]]) -> Result<Vec<u32>, String> {
    let words: Vec<Vec<u8>> = tokens.iter().map(|token| token.to_vec()).collect();
    match compile(source, &vocabulary(&words), &Options::default()) {
        Ok((grammar, _)) => Ok(grammar.mask(grammar.start()).iter().collect()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn a_language_that_no_tokens_spell_does_not_compile() {
    let empty =
        Err("source: no text that matches can be written with the tokens of the vocabulary".to_owned());
    let letters: [&[u8]; 3] = [b"a", b"ab", b"c"];
    assert_eq!(first_mask(Source::Regex("ad"), &letters), empty);
    assert_eq!(
        first_mask(Source::Regex("bc"), &letters),
        empty,
        "`b` occurs, but begins no token"
    );
    assert_eq!(first_mask(Source::Regex("a(d|c)"), &letters), Ok(vec![0]));
    assert_eq!(first_mask(Source::Regex("(ad|c)+"), &letters), Ok(vec![2]));
    let quoted: [&[u8]; 3] = [b"\"", b"a", b"\xED"];
    assert_eq!(
        first_mask(Source::JsonSchema(r#"{"const": "\u00e9"}"#), &quoted),
        empty
    );
    let either = r#"{"enum": ["\u00e9", "a"]}"#;
    assert_eq!(first_mask(Source::JsonSchema(either), &quoted), Ok(vec![0]));
}

/// A byte that begins a character is no way in where no token continues the character.
#[test]
fn no_token_leads_into_a_character_that_cannot_be_finished() {
    let words: Vec<Vec<u8>> = [&b"a"[..], b"\xED", b"\xC3", b"\xA9"].map(<[u8]>::to_vec).into();
    let (grammar, _) =
        compile(Source::Regex(".+"), &vocabulary(&words), &Options::default()).expect("letters");
    let mask = |state| grammar.mask(state).iter().collect::<Vec<_>>();
    assert_eq!(
        mask(grammar.start()),
        [0, 2],
        "0xED needs two more, of which 0x80..0x9F come first"
    );
    let inside = grammar
        .step(grammar.start(), 2)
        .expect("the first byte of a character");
    assert_eq!(mask(inside), [3]);
}
