//! Special tokens never match text, on the tokenizers of published models: a token that is not text is
//! allowed only if the grammar names it, while all tokens with the same bytes are allowed together.

use crate::published;
use std::sync::Arc;

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Grammar, Options, Source, State};

use published::published;

const NAMES: [&str; 5] = ["gpt2", "gpt_oss", "llama3_1", "mistral_v01", "qwen3"];

/// A vocabulary and the ids of all its added tokens, as its file lists them.
type Published = (Arc<Vocabulary>, Vec<(u32, String)>);

fn with_added(test: &str, name: &str) -> Option<Published> {
    let (vocabulary, json) = published(test, name)?;
    let parsed: serde_json::Value = serde_json::from_str(&json).expect("it was read before");
    let added = parsed["added_tokens"].as_array().expect("a list");
    let added = added.iter().map(|token| {
        let id = token["id"].as_u64().expect("an id") as u32;
        (id, token["content"].as_str().expect("a text").to_owned())
    });
    Some((vocabulary, added.collect()))
}

/// Sources that allow as much text as their kind can, each with a text that visits their parts.
const WIDE: [(Source<'static>, &str); 5] = [
    (Source::Regex("(?s).*"), "<|eot_id|> any </s> text <think> "),
    (
        Source::JsonSchema("true"),
        "{\"<|im_end|>\": [\"</s> <s>\\n\", -12.5e3, null, {\"a\": true}]}",
    ),
    (
        Source::JsonSchema(r#"{"type":"object","properties":{"<s>":{"type":"string"}},"required":["<s>"]}"#),
        "{\"<s>\": \"<|endoftext|>\", \"</s>\": \"<tool_call>\"}",
    ),
    (
        Source::JsonSchema(r#"{"type":"string","pattern":"^<.*>$","maxLength":40}"#),
        "\"<|begin_of_text|> <|endoftext|>\"",
    ),
    (
        Source::Ebnf(
            "root ::= ([^\\n] | \"\\n\" | tag)*  tag ::= \"<|\" [a-z_]+ \"|>\" | \"<s>\" | \"<think>\"",
        ),
        "a <|im_start|>user\n<think> <s>",
    ),
];

/// Returns the tokens of the mask that are not text and do not end the sequence where it may end.
fn intruders(grammar: &Grammar, state: State) -> Vec<u32> {
    let vocabulary = grammar.vocabulary();
    let ends = |token| vocabulary.is_eos(token) && grammar.is_accepting(state);
    let mask = grammar.mask(state);
    let others = mask
        .iter()
        .filter(|&token| vocabulary.kind(token) != TokenKind::Text && !ends(token));
    others.collect()
}

fn states_along(grammar: &Grammar, text: &str) -> Vec<State> {
    let mut states = vec![grammar.start()];
    for byte in text.bytes() {
        let next = grammar.step_bytes(states[states.len() - 1], &[byte]);
        states.push(next.unwrap_or_else(|| panic!("{text:?} leaves the language at {}", states.len() - 1)));
    }
    states
}

#[test]
fn no_special_token_is_allowed_where_the_grammar_does_not_name_it() {
    for name in NAMES {
        let Some((vocabulary, added)) = with_added("no_special_token_is_allowed", name) else {
            return;
        };
        let compiler = Compiler::new(vocabulary.clone());
        for (source, text) in WIDE {
            let (grammar, _) = compiler
                .compile(source, &Options::default())
                .expect("it compiles");
            for state in states_along(&grammar, text) {
                assert_eq!(intruders(&grammar, state), [0u32; 0], "{name}: {source:?}");
                for (token, content) in &added {
                    let ends = vocabulary.is_eos(*token) && grammar.is_accepting(state);
                    assert!(
                        ends || !grammar.allows(state, *token),
                        "{name}: {content} in {source:?}"
                    );
                }
            }
        }
    }
}

/// The text of a special token's name can be written, but not with the special token.
#[test]
fn the_name_of_a_special_token_is_text_like_any_other() {
    for name in NAMES {
        let Some((vocabulary, added)) = with_added("the_name_of_a_special_token", name) else {
            return;
        };
        let compiler = Compiler::new(vocabulary.clone());
        let (grammar, _) = compiler
            .compile(Source::Regex("(?s).*"), &Options::default())
            .expect("it compiles");
        for (token, content) in added {
            assert_ne!(vocabulary.kind(token), TokenKind::Text, "{name}: {content}");
            assert!(grammar.step_bytes(grammar.start(), content.as_bytes()).is_some());
            let named = vocabulary.special(&content).expect("it is found by its name");
            assert_eq!(vocabulary.bytes(named), content.as_bytes());
        }
    }
}

#[test]
fn a_grammar_that_names_a_special_token_allows_it_and_no_other() {
    let sources = [
        ("llama3_1", "root ::= \"a\" <|eot_id|>", "<|eot_id|>"),
        ("qwen3", "root ::= \"a\" <|fim_prefix|>", "<|fim_prefix|>"),
        ("gpt_oss", "root ::= \"a\" <|channel|>", "<|channel|>"),
    ];
    for (name, source, special) in sources {
        let Some((vocabulary, _)) = with_added("a_grammar_that_names_a_special_token", name) else {
            return;
        };
        let compiler = Compiler::new(vocabulary.clone());
        let (grammar, _) = compiler
            .compile(Source::Ebnf(source), &Options::default())
            .expect("it compiles");
        let behind = grammar
            .step_bytes(grammar.start(), b"a")
            .expect("the text begins with a");
        let named = vocabulary.special(special).expect("the vocabulary has it");
        assert_eq!(grammar.mask(behind).iter().collect::<Vec<_>>(), [named], "{name}");
        assert_eq!(intruders(&grammar, grammar.start()), [0u32; 0], "{name}");
    }
}

/// SentencePiece models write a letter in two ways, as itself and as its byte; either both or none is
/// allowed.
#[test]
fn tokens_of_the_same_bytes_are_allowed_together() {
    let mut pairs = 0;
    for name in NAMES {
        let Some((vocabulary, _)) = with_added("tokens_of_the_same_bytes", name) else {
            return;
        };
        let compiler = Compiler::new(vocabulary.clone());
        for (source, text) in WIDE {
            let (grammar, _) = compiler
                .compile(source, &Options::default())
                .expect("it compiles");
            let states = states_along(&grammar, text);
            for &state in states.iter().step_by(5) {
                pairs += check_twins(&grammar, state);
            }
        }
    }
    assert!(
        pairs > 1000,
        "only {pairs} pairs were met, so the test shows nothing"
    );
}

fn check_twins(grammar: &Grammar, state: State) -> usize {
    let vocabulary = grammar.vocabulary();
    let mask = grammar.mask(state);
    let shared = vocabulary.trie().nodes().iter().filter(|node| node.count > 1);
    let mut met = 0;
    for node in shared {
        let twins = vocabulary.trie().tokens_at(node);
        let allowed: Vec<bool> = twins.iter().map(|&token| mask.contains(token)).collect();
        assert!(allowed.windows(2).all(|two| two[0] == two[1]), "{twins:?}");
        met += twins.len() - 1;
    }
    met
}
