//! What a grammar remembers: the texts it read and the masks it made, and never what tokens could have written.

use std::sync::Arc;

use lexiform::compile::{Compiler, Options, Source};
use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, State};

/// Objects with open keys inside objects: every token could begin a key of its own.
const OPEN_KEYS: &str = r#"{"anyOf": [
    {"type": "object", "properties": {"a": {"type": "object", "properties": {"grades": {"type": "object"}}}}},
    {"type": "object", "properties": {"b": {"type": "object", "properties": {"grades": {"type": "object"}}}}},
    {"type": "object", "additionalProperties": {"type": "string", "maxLength": 12}}]}"#;

const TEXT: &str =
    r#"{"b": {"grades": {"math": 90, "history": {"x": "y"}, "sport": [1, 2]}, "more": {"z": {}}}}"#;

/// All bytes, all pairs of letters, and pairs that close a key and open the next.
fn vocabulary() -> Arc<Vocabulary> {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    for first in b'a'..=b'z' {
        for second in b'a'..=b'z' {
            let pair = [first, second];
            let behind: [&[u8]; 4] = [b"", b"\":", b"\": {\"", b"\": 1, \""];
            tokens.extend(behind.map(|rest| (TokenKind::Text, [&pair[..], rest].concat())));
        }
    }
    Arc::new(Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed"))
}

fn grammar(schema: &str, grammar_bytes: usize) -> Grammar {
    let limits = Limits {
        grammar_bytes,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let compiled = Compiler::new(vocabulary()).compile(Source::JsonSchema(schema), &options);
    compiled.expect("the schema compiles").0
}

/// The states at all prefixes of a text.
fn states(grammar: &Grammar, text: &str) -> Vec<State> {
    let mut states = vec![grammar.start()];
    for byte in text.bytes() {
        let last = *states.last().expect("there is a start");
        let next = grammar.step_bytes(last, &[byte]);
        states.push(next.unwrap_or_else(|| panic!("{text} stops after {}", states.len() - 1)));
    }
    states
}

#[test]
fn masks_leave_nothing_behind_but_themselves() {
    let (read, masked) = (grammar(OPEN_KEYS, 1), grammar(OPEN_KEYS, 1));
    check_nothing_is_left((read, masked), TEXT);
}

fn check_nothing_is_left((read, masked): (Grammar, Grammar), text: &str) {
    states(&read, text);
    for state in states(&masked, text) {
        assert!(!masked.mask(state).is_empty());
    }
    let one_mask = masked.mask(masked.start()).words().len() * 4 + 64;
    let extra = masked.bytes().saturating_sub(read.bytes() + one_mask);
    let room = 4_000 * text.len();
    assert!(extra < room, "masks left {extra} bytes behind, more than {room}");
}

/// Every token could go on in a word whose text a judge has to see.
#[test]
fn masks_leave_nothing_behind_of_words_that_are_judged() {
    let schema = r#"{"type": "string", "format": "hostname"}"#;
    let (read, masked) = (grammar(schema, 1), grammar(schema, 1));
    check_nothing_is_left((read, masked), r#""www.xn--mnchen-3ya.example""#);
}

#[test]
fn memory_grows_with_the_text_and_not_with_its_square() {
    let keys = |count: usize| {
        let members: Vec<String> = (0..count)
            .map(|key| format!(r#""key number {key}": {key}"#))
            .collect();
        format!("{{{}}}", members.join(", "))
    };
    let bytes = |count: usize| {
        let grammar = grammar(r#"{"type": "object"}"#, 1);
        states(&grammar, &keys(count));
        grammar.bytes()
    };
    let (some, more) = (bytes(50), bytes(200));
    assert!(more < some * 6, "{some} bytes for 50 keys, {more} for 200");
}

#[test]
fn dropped_masks_and_fresh_grammars_give_the_same_masks() {
    let (small, large) = (grammar(OPEN_KEYS, 1), grammar(OPEN_KEYS, 64 << 20));
    let fresh = large.fresh();
    assert!(fresh.bytes() <= large.bytes() && !fresh.is(&large));
    let in_all = states(&small, TEXT)
        .into_iter()
        .zip(states(&large, TEXT))
        .zip(states(&fresh, TEXT));
    for ((small_state, large_state), fresh_state) in in_all {
        let mask = large.mask(large_state);
        assert_eq!(small.mask(small_state), mask);
        assert_eq!(small.mask(small_state), mask, "made again after it was dropped");
        assert_eq!(fresh.mask(fresh_state), mask);
    }
}
