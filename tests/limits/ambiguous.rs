//! Grammars whose parses multiply: their compiles are small, and the work of their masks, steps and distances
//! is counted. Every query is answered, or refused with the name of a limit; none brings down the process,
//! and other grammars over the same tables keep working.

use std::fmt::Write;
use std::sync::Arc;

use lexiform::MaskRequest;
use lexiform::error::Exhausted;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform::{Grammar, State};

fn vocabulary() -> Arc<Vocabulary> {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    let longer = [
        "zz", "zzzz", "xx", "xz", "zx", "xxxx", "xxxxxxxx", "ab", "aa", "aaaa",
    ];
    tokens.extend(longer.map(|token| (TokenKind::Text, token.as_bytes().to_vec())));
    Arc::new(Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed"))
}

fn rules(count: usize, rule: impl Fn(usize) -> String, last: &str) -> String {
    let mut text = String::from("root ::= r0\n");
    for index in 0..count {
        let _ = writeln!(text, "r{index} ::= {}", rule(index + 1));
    }
    let _ = writeln!(text, "r{count} ::= {last}");
    text
}

/// Returns the families, each at a size.
fn sources(size: usize) -> [(&'static str, String); 5] {
    let stars = rules(size, |next| format!("(r{next} \"x\")*"), "\"z\"");
    let pairs = rules(size, |next| format!("r{next} r{next} | \"\""), "\"z\"");
    let either = rules(
        size,
        |next| format!("r{next} \"x\" | r{next} \"z\" | r{next}"),
        "\"z\"?",
    );
    let middle = "root ::= s\ns ::= s s s | \"a\" | \"\"\n".to_owned();
    let mut twins = String::from("root ::= ");
    for index in 0..size {
        let _ = write!(twins, "{}t{index}", if index > 0 { " | " } else { "" });
    }
    for index in 0..size {
        let _ = write!(twins, "\nt{index} ::= \"z\" root \"x\" | \"{index}\"");
    }
    [
        ("stars", stars),
        ("pairs", pairs),
        ("either", either),
        ("middle", middle),
        ("twins", twins),
    ]
}

/// Walks a text of the grammar as far as queries are answered, and returns the number of masks.
fn walk(grammar: &Grammar, steps: usize, pick: usize) -> Result<usize, Exhausted> {
    let mut state = grammar.start();
    for step in 0..steps {
        let mask = grammar.try_mask(state)?;
        let tokens: Vec<u32> = mask.iter().collect();
        assert!(!tokens.is_empty(), "a mask that is answered leaves a token");
        let token = tokens[(pick + step * 7) % tokens.len()];
        let next = grammar.try_step(state, token)?;
        state = next.expect("a token of the mask may come");
        if grammar.is_finished(state) {
            return Ok(step);
        }
    }
    Ok(steps)
}

#[test]
fn every_question_is_answered_or_refused_by_name() {
    let compiler = Compiler::new(vocabulary());
    let mut options = Options::default();
    options.limits.mask_work = 1 << 18;
    for size in [3, 40, 600] {
        for (name, source) in sources(size) {
            let Ok((grammar, _)) = compiler.compile(Source::Ebnf(&source), &options) else {
                continue;
            };
            for pick in 0..4 {
                match walk(&grammar, 12, pick) {
                    Ok(_) => {}
                    Err(Exhausted { limit, .. }) => {
                        assert!(size > 3 || name == "middle", "{name} of {size} is small");
                        assert!(["mask_work", "grammar_bytes"].contains(&limit), "{limit}");
                    }
                }
                assert!(
                    grammar.memory_usage() < 100 << 20,
                    "{name} of {size}: {} bytes",
                    grammar.memory_usage()
                );
            }
            let start = grammar.start();
            let _ = (
                grammar.min_completion(start),
                grammar.forced(start),
                grammar.explain(start, 5),
            );
        }
    }
    // A refused query leaves nothing unfinished in the tables that the grammars share.
    let (grammar, _) = compiler
        .compile(Source::Ebnf("root ::= [a-z]+ \"x\""), &options)
        .expect("a grammar");
    assert_eq!(walk(&grammar, 12, 0), Ok(12));
}

#[test]
fn what_is_refused_with_little_is_the_same_mask_with_more() {
    for (name, source) in sources(12) {
        let grammar = |mask_work: usize| {
            let mut options = Options::default();
            options.limits.mask_work = mask_work;
            Compiler::new(vocabulary())
                .compile(Source::Ebnf(&source), &options)
                .expect("small grammars compile")
                .0
        };
        let (ample, scarce) = (grammar(1 << 40), grammar(12_000));
        let ask = |grammar: &Grammar, text: &str| -> Option<Vec<u32>> {
            let state = grammar.try_step_bytes(grammar.start(), text.as_bytes()).ok()??;
            Some(grammar.try_mask(state).ok()?.iter().collect())
        };
        let texts = ["", "z", "zz", "a", "aa", "aaaaaa", "zx", "zxx", "zz1", "zzzz"];
        let mut answered = 0;
        // Queried twice: a refusal must not be cached as something else.
        for text in texts.iter().chain(&texts) {
            if let Some(mask) = ask(&scarce, text) {
                answered += 1;
                assert_eq!(Some(mask), ask(&ample, text), "{name} behind {text}");
            }
        }
        assert!(answered > 0, "{name}");
    }
}

#[test]
fn masks_near_the_end_of_a_budget_leave_a_way_where_all_are_too_many() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": true},
        "required": ["a", "b"], "additionalProperties": {"type": "array"}}"#;
    for mask_work in [1 << 9, 1 << 12, 1 << 15, 1 << 22] {
        let mut options = Options::default();
        options.limits.mask_work = mask_work;
        let (grammar, _) = Compiler::new(vocabulary())
            .compile(Source::JsonSchema(schema), &options)
            .expect("it compiles");
        for extra in 0..6 {
            let Some(left) = grammar.min_completion(grammar.start()) else {
                continue;
            };
            let (mut state, mut left) = (grammar.start(), left + extra);
            let finished = loop {
                let Ok((mask, _)) = grammar.steered_mask(MaskRequest::from(state).within(left)) else {
                    break false;
                };
                let tokens: Vec<u32> = mask.iter().collect();
                assert!(!tokens.is_empty(), "{left} tokens are left");
                let next = grammar.try_step(state, tokens[(left * 31) % tokens.len()]);
                let Ok(next) = next else { break false };
                state = next.expect("a token of the mask");
                left -= 1;
                if grammar.is_finished(state) {
                    break true;
                }
            };
            assert!(
                finished || mask_work < 1 << 12,
                "with {mask_work} rounds it ends in time"
            );
        }
    }
}

#[test]
fn a_sequence_that_is_refused_leaves_others_of_its_grammar_alone() {
    let source = "root ::= \"a\" r0 | \"z\" [a-z]*\n".to_owned()
        + rules(3000, |next| format!("(r{next} \"x\")*"), "\"z\"").trim_start_matches("root ::= r0\n");
    let mut options = Options::default();
    options.limits.mask_work = 1 << 15;
    let (grammar, _) = Compiler::new(vocabulary())
        .compile(Source::Ebnf(&source), &options)
        .expect("it compiles");
    let behind = |text: &str| -> Result<Option<State>, Exhausted> {
        grammar.try_step_bytes(grammar.start(), text.as_bytes())
    };
    let plain = behind("zebra").expect("cheap").expect("a word");
    let before = grammar.try_mask(plain).expect("cheap");
    let heavy = behind("az").and_then(|state| grammar.try_mask(state.expect("a word")));
    assert_eq!(heavy.expect_err("three thousand readings").limit, "mask_work");
    assert!(
        grammar
            .mask(behind("a").expect("cheap").expect("a word"))
            .iter()
            .next()
            .is_none()
    );
    assert_eq!(grammar.try_mask(plain).expect("cheap"), before);
}
