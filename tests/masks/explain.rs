//! Explanations of a state for people: the text that may come next, and the place of its rule in the source.

use std::sync::Arc;

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Expected, Way};
use lexiform::{Grammar, Options, Source, compile};

fn bytes() -> Arc<Vocabulary> {
    let mut tokens = vec![
        (TokenKind::Special, b"<eos>".to_vec()),
        (TokenKind::Special, b"<|call|>".to_vec()),
    ];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"))
}

fn grammar(source: Source<'_>) -> Grammar {
    let compiled = compile(source, &bytes(), &Options::default());
    compiled.unwrap_or_else(|error| panic!("{error}")).0
}

fn ways(grammar: &Grammar, text: &str) -> Vec<Way> {
    let state = grammar.step_bytes(grammar.start(), text.as_bytes());
    grammar.explain(state.expect("the text is allowed"), 10).ways
}

const PERSON: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"], "additionalProperties": false}"#;

#[test]
fn a_fixed_text_is_shown_whole_and_forced() {
    let grammar = grammar(Source::JsonSchema(PERSON));
    let state = grammar.step_bytes(grammar.start(), b"{\"na").expect("allowed");
    let told = grammar.explain(state, 10);
    assert_eq!((told.may_end, told.readings), (false, 1));
    assert_eq!(told.forced, b"me\":");
    assert_eq!(told.ways[0].expected, Expected::Text(b"me\":".to_vec()));
    assert_eq!(told.ways[0].bytes, [(b'm', b'm')]);
}

#[test]
fn a_word_of_a_language_is_shown_by_its_shortest_end_and_its_place() {
    let grammar = grammar(Source::JsonSchema(PERSON));
    let inside = &ways(&grammar, "{\"name\":\"Ad")[0];
    // The quote at its end is the object's.
    let shortest = Vec::new();
    assert_eq!(
        inside.expected,
        Expected::Word {
            shortest,
            begun: true
        }
    );
    // Nothing is left to be read of the schema of the name, but of that of the object.
    assert_eq!(inside.rules, ["#"]);
    let number = ways(&grammar, "{\"name\":\"Ada\",\"age\":");
    let begun = |way: &Way| matches!(&way.expected, Expected::Word { begun: false, .. });
    assert!(
        number
            .iter()
            .any(|way| begun(way) && way.bytes.contains(&(b'0', b'9'))),
        "{number:?}"
    );
}

#[test]
fn rules_and_special_tokens_are_named() {
    let source = "root ::= (call | word) \".\"  word ::= [a-z]+  call ::= <|call|> word";
    let grammar = grammar(Source::Ebnf(source));
    let told = ways(&grammar, "");
    let special = told
        .iter()
        .find(|way| way.expected == Expected::Special("<|call|>".into()));
    assert_eq!(special.expect("the token is named").rules, ["call", "root"]);
    let word = |way: &&Way| matches!(way.expected, Expected::Word { .. });
    assert_eq!(told.iter().find(word).expect("a word may come").rules, ["root"]);
}

#[test]
fn keys_of_open_objects_are_told_from_values() {
    let grammar = grammar(Source::JsonSchema(
        r#"{"type": "object", "additionalProperties": {"type": "null"}}"#,
    ));
    let told = ways(&grammar, "{\"k");
    assert!(
        matches!(told[0].expected, Expected::Key { begun: true, .. }),
        "{told:?}"
    );
}

#[test]
fn never_more_ways_are_told_than_asked_for() {
    let members: Vec<String> = (0..8)
        .map(|at| format!("\"key{at}\": {{\"type\": \"null\"}}"))
        .collect();
    let schema = format!(
        "{{\"type\": \"object\", \"properties\": {{{}}}}}",
        members.join(", ")
    );
    let grammar = grammar(Source::JsonSchema(&schema));
    let state = grammar.step_bytes(grammar.start(), b"{\"key").expect("allowed");
    assert!(
        grammar.explain(state, 100).ways.len() > 3,
        "the members begin alike"
    );
    for most in 0..4 {
        assert_eq!(grammar.explain(state, most).ways.len(), most);
    }
}

#[test]
fn nothing_is_told_of_a_finished_sequence() {
    let grammar = grammar(Source::Regex("a?"));
    let end = grammar.step(grammar.start(), 0).expect("the text may be empty");
    let told = grammar.explain(end, 10);
    assert_eq!((told.may_end, told.readings, told.ways.len()), (false, 0, 0));
    assert!(grammar.explain(grammar.start(), 10).may_end);
}
