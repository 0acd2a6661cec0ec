//! The memory of a grammar: it caches the texts that it read and the masks that it made, but never the texts
//! that tokens could have written.

use std::sync::Arc;

use lexiform::limits::Limits;
use lexiform::schema::KeyOrder;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform::{Grammar, Mask, State};

/// Objects with open keys inside objects: every token could begin a different key.
const OPEN_KEYS: &str = r#"{"anyOf": [
    {"type": "object", "properties": {"a": {"type": "object", "properties": {"grades": {"type": "object"}}}}},
    {"type": "object", "properties": {"b": {"type": "object", "properties": {"grades": {"type": "object"}}}}},
    {"type": "object", "additionalProperties": {"type": "string", "maxLength": 12}}]}"#;

const TEXT: &str =
    r#"{"b": {"grades": {"math": 90, "history": {"x": "y"}, "sport": [1, 2]}, "more": {"z": {}}}}"#;

/// Creates a vocabulary of all bytes, all pairs of letters, and pairs that close a key and open the next.
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

/// Returns the states at all prefixes of a text.
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
    let extra = masked
        .memory_usage()
        .saturating_sub(read.memory_usage() + one_mask);
    let room = 4_000 * text.len();
    assert!(extra < room, "masks left {extra} bytes behind, more than {room}");
}

/// Every token could continue a word whose text a validator has to see.
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
        grammar.memory_usage()
    };
    let (some, more) = (bytes(50), bytes(200));
    assert!(more < some * 6, "{some} bytes for 50 keys, {more} for 200");
}

#[test]
fn dropped_masks_and_fresh_grammars_give_the_same_masks() {
    let (small, large) = (grammar(OPEN_KEYS, 1), grammar(OPEN_KEYS, 64 << 20));
    let fresh = large.fresh();
    assert!(fresh.memory_usage() <= large.memory_usage() && !fresh.ptr_eq(&large));
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

/// Returns a list of objects whose keys must be remembered, with members that need not be.
fn long_text(objects: usize) -> String {
    let object = |number: usize| format!(r#"{{"a": {{"grades": {{"{number:07}": [{number}]}}}}}}"#);
    let objects: Vec<String> = (0..objects).map(object).collect();
    format!("[{}]", objects.join(", "))
}

#[test]
fn a_text_without_end_is_read_within_the_bound() {
    const BOUND: usize = 1 << 20;
    let schema = format!(r#"{{"type": "array", "items": {OPEN_KEYS}}}"#);
    let (plain, mut renewed) = (grammar(&schema, 64 << 20), grammar(&schema, BOUND));
    let (first, mut generations) = (renewed.clone(), 1);
    let (mut state, mut moved) = (plain.start(), renewed.start());
    for byte in long_text(200).bytes() {
        state = plain.step_bytes(state, &[byte]).expect("the text is allowed");
        moved = renewed.step_bytes(moved, &[byte]).expect("the text is allowed");
        assert_eq!(renewed.mask(moved), plain.mask(state));
        generations += usize::from(renewed.compact(std::slice::from_mut(&mut moved)));
        assert!(
            renewed.memory_usage() <= BOUND,
            "{} bytes in generation {generations}",
            renewed.memory_usage()
        );
    }
    assert!(plain.memory_usage() > 2 * BOUND, "{} bytes", plain.memory_usage());
    assert!(generations > 4, "{generations} generations");
    assert!(!renewed.ptr_eq(&first) && renewed.is_accepting(moved));
    assert_eq!(renewed.adopt(&plain, state), None, "it was compiled apart");
}

/// The memory of a text that has to be remembered as a whole exceeds the bound. It is copied when it has
/// grown by a fraction of itself, and not each time that a certain number of bytes has been read.
#[test]
fn what_must_be_remembered_is_copied_seldom() {
    let mut grammar = grammar(r#"{"type": "object"}"#, 1 << 16);
    let (mut state, mut generations) = (grammar.start(), 0);
    let mut read = |keys: std::ops::Range<usize>| {
        for key in keys {
            let member = format!(r#"{} "{key}": {key}"#, if key == 0 { '{' } else { ',' });
            let next = grammar.step_bytes(state, member.as_bytes());
            state = next.expect("the key is new");
            generations += usize::from(grammar.compact(std::slice::from_mut(&mut state)));
        }
        let goes_on = |key: &str| {
            let member = format!(r#", "{key}":"#);
            grammar.step_bytes(state, member.as_bytes()).is_some()
        };
        assert!(!goes_on("7") && !goes_on("70") && goes_on("x"));
        generations
    };
    let (some, more) = (read(0..200), read(200..1600));
    assert!(some > 10 && more < 3 * some, "{some} times, then {more}");
}

#[test]
fn all_sequences_go_on_in_the_same_grammar() {
    let old = grammar(r#"{"type": "object"}"#, 1 << 18);
    let behind = |text: &str| {
        old.step_bytes(old.start(), text.as_bytes())
            .expect("the text is allowed")
    };
    let [mut a, mut b] = [r#"{"a": 1"#, r#"{"b": 1"#].map(behind);
    assert!(old.compacted().is_none(), "{} bytes", old.memory_usage());
    states(&old, &format!(r#"{{"{}": 1"#, "k".repeat(200)));
    let [mut one, mut other] = [old.clone(), old.clone()];
    assert!(one.compact(std::slice::from_mut(&mut a)) && other.compact(std::slice::from_mut(&mut b)));
    assert!(one.ptr_eq(&other) && !one.ptr_eq(&old));
    assert_ne!(a, b);
    let takes = |state, key: &str| {
        one.step_bytes(state, format!(r#", "{key}":"#).as_bytes())
            .is_some()
    };
    assert_eq!([takes(a, "a"), takes(a, "b")], [false, true]);
    assert_eq!([takes(b, "a"), takes(b, "b")], [true, false]);
    assert_eq!(one.adopt(&old, old.start()), Some(one.start()));
}

/// The grammar of what follows some bytes is replaced together with the whole grammar, and begins after the
/// same bytes in every generation.
#[test]
fn the_rest_after_some_bytes_stays_that_rest() {
    let whole = grammar(r#"{"type": "object"}"#, 1 << 18);
    let after = |bytes: &[u8]| whole.after(bytes).expect("a short text");
    let rest = after(br#"{"a": 1"#).expect("an object begins like this");
    assert!(after(b"[").is_none() && rest.ptr_eq(&whole) && rest.start() != whole.start());
    assert!(rest.compacted().is_none(), "{} bytes", rest.memory_usage());
    states(&whole, &format!(r#"{{"{}": 1"#, "k".repeat(200)));
    let renewed = rest.compacted().expect("it has outgrown its memory");
    assert!(whole.compacted().is_some_and(|whole| whole.ptr_eq(&renewed)));
    for rest in [&rest, &renewed, &rest.fresh(), &renewed.fresh()] {
        let takes = |text: &str| rest.step_bytes(rest.start(), text.as_bytes()).is_some();
        let goes_on = [r#", "a":"#, r#", "b":"#, "}", "{"].map(takes);
        assert_eq!(goes_on, [false, true, true, false]);
    }
}

/// Returns two objects with different members within one object, with arbitrary keys if they are open.
fn two_objects(open: bool) -> String {
    let others = if open {
        ""
    } else {
        r#", "additionalProperties": false"#
    };
    let object = |key: &str| {
        let members = format!(r#"{{"{key}": {{"type": "integer"}}, "rest": {{"type": "integer"}}}}"#);
        format!(r#"{{"type": "object", "properties": {members}, "required": ["rest"]{others}}}"#)
    };
    format!(
        r#"{{"type": "object", "properties": {{"x": {}, "y": {}}}, "additionalProperties": false}}"#,
        object("aa"),
        object("bb"),
    )
}

fn with_tokens(open: bool, tokens: &[&str]) -> Grammar {
    let mut all = vec![(TokenKind::Special, b"<eos>".to_vec())];
    all.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    all.extend(
        tokens
            .iter()
            .map(|token| (TokenKind::Text, token.as_bytes().to_vec())),
    );
    let vocabulary = Arc::new(Vocabulary::new(&all, &[0]).expect("the vocabulary is well formed"));
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    let compiled = Compiler::new(vocabulary).compile(Source::JsonSchema(&two_objects(open)), &options);
    compiled.expect("the schema compiles").0
}

/// Returns the masks after these two texts, and the tokens that they allow after all bytes.
fn masks(grammar: &Grammar, texts: [String; 2]) -> ([Arc<Mask>; 2], [Vec<u32>; 2]) {
    let masks = texts.map(|text| {
        let state = grammar.step_bytes(grammar.start(), text.as_bytes());
        grammar.mask(state.expect("the text goes on"))
    });
    let longer = |mask: &Arc<Mask>| {
        mask.iter()
            .filter(|&token| token > 256)
            .map(|token| token - 257)
            .collect()
    };
    let allowed = [longer(&masks[0]), longer(&masks[1])];
    (masks, allowed)
}

#[test]
fn objects_allow_the_same_after_their_members_unless_tokens_see_their_keys() {
    for open in [false, true] {
        let behind = || [r#"{"x": {"aa": 1"#, r#"{"y": {"bb": 1"#].map(str::to_owned);
        let blind = with_tokens(open, &[",\"", ", \"", "},"]);
        let ([one, other], allowed) = masks(&blind, behind());
        assert_eq!(one, other, "open {open}");
        assert_eq!(allowed[0], [0, 1], "the rest has to be written before the end");
        let written = behind().map(|text| text + r#", "rest": 1"#);
        let ([one, other], allowed) = masks(&blind, written);
        assert_eq!(one, other, "open {open}");
        assert_eq!(allowed[0], if open { vec![0, 1, 2] } else { vec![2] });
        // One of the keys within the tokens was written in the first object, and the other in the second.
        let seeing = with_tokens(open, &[", \"aa\"", ", \"bb\"", ", \"b", ", \"r"]);
        let (_, allowed) = masks(&seeing, behind());
        let expected = if open {
            [vec![1, 2, 3], vec![0, 2, 3]]
        } else {
            [vec![3], vec![3]]
        };
        assert_eq!(allowed, expected, "open {open}");
    }
}

#[test]
fn members_share_a_mask_where_no_more_is_left_of_them_than_of_others() {
    let schema = r#"{"type": "object", "properties": {
        "name": {"type": "string"}, "title": {"type": "string"}, "size": {"type": "integer"}},
        "additionalProperties": false}"#;
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    let compiled = Compiler::new(vocabulary()).compile(Source::JsonSchema(schema), &options);
    let (grammar, _) = compiled.expect("the schema compiles");
    let texts = |one: &str, other: &str| [one.to_owned(), other.to_owned()];
    let ([name, title], _) = masks(&grammar, texts("{\"name", "{\"title"));
    assert!(
        Arc::ptr_eq(&name, &title),
        "a quote, a colon and a string are left of both"
    );
    let ([begun, within], _) = masks(&grammar, texts("{\"name\": \"", "{\"title\": \"x"));
    assert!(Arc::ptr_eq(&begun, &within), "a string goes on as it begins");
    let ([name, size], _) = masks(&grammar, texts("{\"name\":", "{\"size\":"));
    assert_ne!(name, size);
}
