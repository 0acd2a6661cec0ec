//! Budgets on the vocabularies of published models: walks that always choose the worst token end in time, and
//! their texts belong to the grammar.

mod wide;

use crate::published;
use std::sync::Arc;

use lexiform::MaskRequest;
use lexiform::error::ProblemKind;
use lexiform::schema::KeyOrder;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Grammar, Options, Source, State};

use published::published;

const SCHEMAS: [&str; 7] = [
    "true",
    r#"{"type":"object","properties":{"name":{"type":"string","minLength":3},"tags":{"type":"array","items":{"type":"string"}},
        "inner":{"type":"object","properties":{"a":{"type":"number"},"b":{"enum":["red","green"]}},"required":["a","b"]}},
        "required":["name"]}"#,
    r##"{"type":"array","items":{"anyOf":[{"type":"integer","minimum":100000},{"type":"object",
        "properties":{"kind":{"const":"a long and tedious kind"},"next":{"$ref":"#/items"}},"required":["kind"]}]},"minItems":2}"##,
    r#"{"type":"object","additionalProperties":{"type":"string","pattern":"^[a-f0-9]{8}-[a-f0-9]{4}$"},"minProperties":2}"#,
    r#"{"type":"object","properties":{"x":{"type":"string","minLength":1000000000},"y":{"type":"string","format":"date-time"}}}"#,
    // The allowed text depends on the keys that were written, and a token may belong to an open key or begin
    // a named one.
    r#"{"type":"object","properties":{"a":{"const":"a long and tedious value"},"ab":{"type":"integer"}},"required":["ab"],
        "additionalProperties":{"const":""},"minProperties":4,"dependentRequired":{"a":["b"]}}"#,
    r#"{"type":"object","propertyNames":{"pattern":"^([a-c]|id)$"},"additionalProperties":{"type":"boolean"},"minProperties":4}"#,
];

/// Schemas with valid texts.
const WRITTEN: [(&str, &str); 6] = [
    (SCHEMAS[0], r#"{"a": [1, {"b": null, "": "x\ny"}], "c": -1.5e3}"#),
    (
        SCHEMAS[1],
        r#"{"x": 1, "inner": {"b": "red", "y": [], "a": 0.5}, "tags": ["t"], "name": "Ada"}"#,
    ),
    (
        SCHEMAS[2],
        r#"[100000, {"kind": "a long and tedious kind", "next": {"kind": "a long and tedious kind"}}]"#,
    ),
    (
        r##"{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"id":{"type":"integer"},"note":{"maxLength":40},
            "below":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["id","below"],"additionalProperties":false}}}"##,
        r#"{"note": "né", "below": [{"id": 1, "below": []}, {"below": [], "id": 22}], "id": 3}"#,
    ),
    // The shortest key that is not taken depends on those that were written.
    (
        r#"{"type":"object","propertyNames":{"pattern":"^[a-h]*$"},"additionalProperties":{"type":"integer"}}"#,
        r#"{"": 1, "a": 2, "b": 3}"#,
    ),
    // A token opens up to three levels, each of which must be closed in many steps.
    (
        r##"{"$ref":"#/$defs/node","$defs":{"node":{"type":["array","null"],"prefixItems":[{"$ref":"#/$defs/node"},
            {"const":"a long and tedious value"}],"items":false,"minItems":2}}}"##,
        r#"[[null, "a long and tedious value"], "a long and tedious value"]"#,
    ),
];

fn compiled(compiler: &Compiler, schema: &str) -> Grammar {
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    let compiled = compiler.compile(Source::JsonSchema(schema), &options);
    compiled.expect("the schema compiles").0
}

/// Returns the minimum number of tokens that are needed after choosing a token.
fn needed(grammar: &Grammar, state: State, token: u32) -> usize {
    let next = grammar.step(state, token).expect("the mask allows it");
    grammar.min_completion(next).expect("every byte is a token")
}

/// Returns the allowed token that needs the most tokens after it; among those, the longest, so that the text
/// makes progress. Judging all of a hundred thousand tokens would take long, so only a sample of them is
/// judged, and a sample of those with several characters that open something.
fn worst(grammar: &Grammar, state: State, allowed: &[u32], salt: usize) -> u32 {
    let step = (allowed.len() / 6).max(1);
    let sample = allowed.iter().skip(salt % step).step_by(step);
    let openers = allowed.iter().filter(|&&token| {
        let bytes = grammar.vocabulary().bytes(token);
        bytes.iter().filter(|byte| b"{[\",".contains(byte)).count() > 1
    });
    let step = (openers.clone().count() / 12).max(1);
    let judged = sample.chain(openers.skip(salt % step).step_by(step));
    let key = |&&token: &&u32| {
        (
            needed(grammar, state, token),
            grammar.vocabulary().bytes(token).len(),
            token,
        )
    };
    *judged.max_by_key(key).expect("some token is allowed")
}

/// Walks with this budget, and returns the text that was written.
fn walk(grammar: &Grammar, mut budget: usize, salt: usize) -> Vec<u8> {
    let (mut state, mut text) = (grammar.start(), Vec::new());
    loop {
        let allowed: Vec<u32> = grammar
            .try_mask(MaskRequest::from(state).within(budget))
            .expect("within the limits")
            .iter()
            .collect();
        assert!(
            !allowed.is_empty(),
            "nothing fits into {budget} after {}",
            text.escape_ascii()
        );
        let going: Vec<u32> = allowed
            .iter()
            .copied()
            .filter(|&token| !grammar.vocabulary().is_eos(token))
            .collect();
        let token = match going.is_empty() {
            true => allowed[0],
            false => worst(grammar, state, &going, salt + budget),
        };
        state = grammar.step(state, token).expect("the mask allows it");
        budget -= 1;
        if grammar.is_finished(state) {
            return text;
        }
        text.extend_from_slice(grammar.vocabulary().bytes(token));
    }
}

#[test]
fn the_worst_walks_end_in_time_with_a_valid_text() {
    for name in ["llama3_1", "mistral_v01"] {
        let Some((vocabulary, _)) = published("the_worst_walks_end_in_time", name) else {
            return;
        };
        let compiler = Compiler::new(vocabulary);
        for schema in SCHEMAS {
            let (grammar, _) = compiler
                .compile(Source::JsonSchema(schema), &Options::default())
                .expect("the schema compiles");
            let validator =
                jsonschema::validator_for(&serde_json::from_str(schema).expect("JSON")).expect("a schema");
            let least = grammar
                .min_completion(grammar.start())
                .expect("every byte is a token");
            for budget in [least, least + 1, least + 20] {
                let text = walk(&grammar, budget, budget);
                let value = serde_json::from_slice(&text);
                let value = value.unwrap_or_else(|error| panic!("{error}: {}", text.escape_ascii()));
                assert!(
                    validator.is_valid(&value),
                    "{name}, {schema}: {}",
                    text.escape_ascii()
                );
            }
            assert!(
                grammar
                    .try_mask(MaskRequest::from(grammar.start()).within(least - 1))
                    .expect("within the limits")
                    .is_empty(),
                "{name}, {schema}"
            );
        }
    }
}

/// An ample budget changes nothing, and takes no separate mask.
#[test]
fn an_ample_budget_gives_the_mask_itself() {
    let Some((vocabulary, _)) = published("an_ample_budget", "llama3_1") else {
        return;
    };
    let compiler = Compiler::new(vocabulary);
    let (grammar, _) = compiler
        .compile(Source::JsonSchema(SCHEMAS[1]), &Options::default())
        .expect("the schema compiles");
    let mut state = grammar.start();
    for &byte in br#"{"name": "Ada", "tags": ["x", "y"]}"# {
        let (mask, within) = (
            grammar.mask(state),
            grammar
                .try_mask(MaskRequest::from(state).within(200))
                .expect("within the limits"),
        );
        assert!(Arc::ptr_eq(&mask, &within));
        state = grammar.step_bytes(state, &[byte]).expect("the text is valid");
    }
}

/// At the smallest budget that takes no token away, the worst tokens can still be completed in time.
#[test]
fn budgets_are_called_ample_only_where_they_are() {
    let Some((vocabulary, _)) = published("budgets_are_called_ample", "llama3_1") else {
        return;
    };
    let compiler = Compiler::new(vocabulary);
    let mut checked = 0;
    for (schema, text) in WRITTEN {
        let grammar = compiled(&compiler, schema);
        for written in 0..text.len() {
            let state = grammar.step_bytes(grammar.start(), &text.as_bytes()[..written]);
            let state = state.expect("the text is valid");
            let mask = grammar.mask(state);
            let budgets: Vec<usize> = (0..512).collect();
            let least = budgets.partition_point(|&budget| {
                grammar
                    .try_mask(MaskRequest::from(state).within(budget))
                    .expect("within the limits")
                    != mask
            });
            let going: Vec<u32> = mask
                .iter()
                .filter(|&token| !grammar.vocabulary().is_eos(token))
                .collect();
            if least == 512 || going.is_empty() {
                continue;
            }
            let openers = going.iter().copied().filter(|&token| {
                let bytes = grammar.vocabulary().bytes(token);
                bytes.len() <= 4 && bytes.iter().all(|byte| b"{[\",: ".contains(byte))
            });
            for token in openers.chain([worst(&grammar, state, &going, written)]) {
                let needed = needed(&grammar, state, token);
                let written = text.as_bytes()[..written].escape_ascii();
                assert!(
                    needed < least,
                    "{schema} after {written}: {token} takes {needed}, not {least}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 150, "{checked} states were checked");
}

/// Repeats the test with a token for each byte, so that nothing is shorter than it seems.
#[test]
fn budgets_of_bytes_are_called_ample_only_where_they_are() {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let texts = ["[[[[[", ", ", ",\"", "{\"", "]]", "ab"].map(|text| text.as_bytes().to_vec());
    // In such a large vocabulary completions are spelled, which is fast, although bytes are tokens.
    let others = (0..=u8::MAX).flat_map(|byte| [vec![0, byte, 0], vec![1, byte, 1]]);
    let tokens = bytes
        .chain(texts)
        .chain(others)
        .map(|text| (TokenKind::Text, text));
    let end = (TokenKind::Special, b"<end>".to_vec());
    let tokens: Vec<_> = std::iter::once(end).chain(tokens).collect();
    let compiler = Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")));
    let schemas = [
        (
            r#"{"type":"array","items":{"type":"integer","minimum":100}}"#,
            "[100, 2",
        ),
        (
            r#"{"propertyNames":{"pattern":"^[a-h]*$"},"additionalProperties":{"type":"integer"},"type":"object"}"#,
            r#"{"": 1, "a": 2"#,
        ),
        (WRITTEN[5].0, "[[null, "),
        (WRITTEN[1].0, r#"{"inner": {"#),
    ];
    for (schema, text) in schemas {
        let grammar = compiled(&compiler, schema);
        for written in 0..=text.len() {
            let state = grammar.step_bytes(grammar.start(), &text.as_bytes()[..written]);
            let state = state.expect("the text is valid");
            let mask = grammar.mask(state);
            let budgets: Vec<usize> = (0..1024).collect();
            let least = budgets.partition_point(|&budget| {
                grammar
                    .try_mask(MaskRequest::from(state).within(budget))
                    .expect("within the limits")
                    != mask
            });
            for token in mask.iter().filter(|&token| !grammar.vocabulary().is_eos(token)) {
                let needed = needed(&grammar, state, token);
                let text = grammar.vocabulary().bytes(token).escape_ascii();
                assert!(
                    needed < least,
                    "{schema} after {written}: {text} takes {needed}, not {least}"
                );
            }
        }
    }
}

/// Earlier queries change neither the distance to the end nor the tokens that are allowed near it.
#[test]
fn what_was_asked_before_makes_no_difference() {
    let Some((vocabulary, _)) = published("what_was_asked_before", "llama3_1") else {
        return;
    };
    let compiler = Compiler::new(vocabulary);
    for (schema, text) in WRITTEN {
        let asked = compiled(&compiler, schema);
        let mut known = Vec::new();
        for written in (0..text.len()).rev() {
            let state = asked.step_bytes(asked.start(), &text.as_bytes()[..written]);
            let state = state.expect("the text is valid");
            let least = asked.min_completion(state).expect("every byte is a token");
            known.push((
                written,
                least,
                asked
                    .try_mask(MaskRequest::from(state).within(least + 1))
                    .expect("within the limits"),
            ));
        }
        for (written, least, mask) in known.iter().step_by(5) {
            let fresh = compiled(&compiler, schema);
            let state = fresh.step_bytes(fresh.start(), &text.as_bytes()[..*written]);
            let state = state.expect("the text is valid");
            let written = text.as_bytes()[..*written].escape_ascii();
            assert_eq!(
                fresh
                    .try_mask(MaskRequest::from(state).within(least + 1))
                    .expect("within the limits"),
                *mask,
                "{schema} after {written}"
            );
            assert_eq!(
                fresh.min_completion(state),
                Some(*least),
                "{schema} after {written}"
            );
        }
    }
}

/// The end of an object depends on the missing members, whatever else was written.
#[test]
fn what_else_an_object_has_makes_no_difference_to_its_end() {
    let Some((vocabulary, _)) = published("what_else_an_object_has", "llama3_1") else {
        return;
    };
    let compiler = Compiler::new(vocabulary);
    let schema = r#"{"type":"object","properties":{"a":true,"b":{"type":"string"},"c":{"type":"object","required":["d","e"]}},
        "required":["b","c"]}"#;
    let grammar = compiled(&compiler, schema);
    let least = |text: &str| {
        let state = grammar.step_bytes(grammar.start(), text.as_bytes());
        grammar.min_completion(state.expect("the text is valid"))
    };
    let alike = [
        [
            r#"{"a":1"#,
            r#"{"x":1"#,
            r#"{"a":1,"x":{"y":[2]}"#,
            r#"{"x":1,"y":2,"a":3"#,
        ],
        [
            r#"{"b":"","c":{"d":1"#,
            r#"{"c":{"d":1"#,
            r#"{"a":0,"c":{"f":1,"d":1"#,
            r#"{"b":"x","c":{"d":1,"f":[]"#,
        ],
    ];
    for [first, more @ ..] in alike {
        for text in more {
            let is_missing = |text: &str| !text.contains(r#""b""#);
            match is_missing(text) == is_missing(first) {
                true => assert_eq!(least(text), least(first), "{first} and {text}"),
                false => assert!(least(text) > least(first), "{first} and {text}"),
            }
        }
    }
    assert!(least(r#"{"c":{"d":1"#) > least(r#"{"b":"","c":{"d":1"#));
}

/// Thousands of rules that call each other in one circle, most of them before anything is read: the overshoot
/// bound is given up, and the tokens are examined to find what they need.
#[test]
fn rules_in_a_large_circle_have_budgets() {
    let last = 3_000;
    let rules = (0..last).map(|rule| format!("r{} ::= r{rule} | \"a{rule}\"\n", rule + 1));
    let source = format!(
        "root ::= r{last}\nr0 ::= \"[\" r{last} \"]\"\n{}",
        rules.collect::<String>()
    );
    let bytes = (0..=u8::MAX).map(|byte| (TokenKind::Text, vec![byte]));
    let more = [
        (TokenKind::Special, b"<end>".to_vec()),
        (TokenKind::Text, b"[[[".to_vec()),
    ];
    let tokens: Vec<_> = bytes.chain(more).collect();
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[256]).expect("a vocabulary"));
    let compiler = Compiler::new(vocabulary);
    let (grammar, _) = compiler
        .compile(Source::Ebnf(&source), &Options::default())
        .expect("the grammar compiles");
    let start = grammar.start();
    assert_eq!(grammar.min_completion(start), Some(3));
    assert_eq!(
        grammar
            .try_mask(MaskRequest::from(start).within(1_000))
            .expect("within the limits"),
        grammar.mask(start)
    );
    // What opens must be closed: three brackets, `a0`, three brackets, and the end.
    assert!(
        !grammar
            .try_mask(MaskRequest::from(start).within(6))
            .expect("within the limits")
            .contains(257)
    );
    assert!(
        grammar
            .try_mask(MaskRequest::from(start).within(7))
            .expect("within the limits")
            .contains(257)
    );
}

#[test]
fn what_is_too_long_to_count_is_told_from_what_cannot_be_written() {
    let long = format!("root ::= \"a\"{}", "{100000}".repeat(4));
    let compiled = |bytes: std::ops::RangeInclusive<u8>, source: &str| {
        let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
        tokens.extend(bytes.map(|byte| (TokenKind::Text, vec![byte])));
        let vocabulary = Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed");
        let compiler = Compiler::new(Arc::new(vocabulary));
        let compiled = compiler.compile(Source::Ebnf(source), &Options::default());
        compiled.map(|(grammar, _)| grammar)
    };
    let whole = |source| compiled(0..=255, source).expect("it is small");
    let without_letters = |source| compiled(0..=b'A', source).map(|_| "it compiles");
    let shortest = |grammar: Grammar| grammar.min_completion(grammar.start());
    // 10²⁰ letters, 1,024 letters, and letters that no token writes.
    assert_eq!(shortest(whole(&long)), Some(usize::MAX));
    let short = "root ::= \"a\"{1024}";
    assert_eq!(shortest(whole(short)), Some(1025));
    for source in [short, &long] {
        let error = without_letters(source).expect_err("no token writes the letter");
        assert_eq!(error.problems[0].kind, ProblemKind::Unsatisfiable);
    }
    let grammar = whole(&long);
    assert_eq!(
        grammar
            .try_mask(MaskRequest::from(grammar.start()).within(1 << 40))
            .expect("within the limits")
            .count(),
        0
    );
    assert!(!grammar.completes_within(grammar.start(), 1 << 40));
}
