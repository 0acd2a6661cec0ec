//! No source, however deep, overflows a stack: every parser with every way to make a source deep, each on a
//! thread whose stack is half of the default. An overflow ends the process, so any result is a pass if it is
//! a grammar that yields masks, or an error of a kind that describes the problem in the source.

mod forms;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use forms::Reader;
use lexiform::MaskRequest;
use lexiform::error::{Place, Problem, ProblemKind};
use lexiform::limits::{Cancel, Limits};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform_syntax::schema;

/// Half of the default stack of a Rust thread.
const STACK: usize = 1 << 20;

/// The maximum nesting of brackets: the parsers of regular expressions and grammars recurse.
const BRACKETS: usize = 250;

/// The number of checks after which a compile is cancelled: a deep source must not be slow here.
const LOOKS: usize = 100_000;

fn compiler() -> Compiler {
    let longer = ["\"}", "\",\"", "\":", "[[", "]]", "1,", "{\"", "aa", "ab", "zx"];
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    tokens.extend(longer.map(|token| (TokenKind::Text, token.as_bytes().to_vec())));
    Compiler::new(Arc::new(
        Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed"),
    ))
}

fn options() -> Options {
    let looks = AtomicUsize::new(0);
    let cancel = Cancel::when(move || looks.fetch_add(1, Ordering::Relaxed) > LOOKS);
    Options {
        limits: Limits {
            cancel,
            ..Limits::default()
        },
        ..Options::default()
    }
}

/// Returns the result of a source and this many tokens of its language, on a small stack. Everything that
/// reads the source, or walks the grammar, runs there, including the drops.
fn outcome(reader: Reader, source: String, steps: usize) -> Result<(), Vec<Problem>> {
    let small = thread::Builder::new().stack_size(STACK);
    let judge = small.spawn(move || {
        let (pattern, options) = (pattern(&source), options());
        let source = match reader {
            Reader::Ebnf => Source::Ebnf(&source),
            Reader::Regex => Source::Regex(&source),
            Reader::Schema => Source::JsonSchema(&source),
            Reader::Pattern => Source::JsonSchema(&pattern),
        };
        let compiled = compiler().compile(source, &options);
        if let Source::JsonSchema(text) = source {
            // These end like the compile, or with a form.
            let _ = schema::normal_form(text, &options.schema, &options.limits);
            let _ = schema::report(text, &options.schema, &options.limits);
        }
        let (grammar, _) = compiled.map_err(|error| error.problems)?;
        let mut state = grammar.start();
        for _ in 0..steps {
            let mask = grammar
                .try_mask(MaskRequest::from(state).within(100))
                .expect("within the limits");
            grammar.explain(state, 3);
            grammar.min_completion(state);
            let Some(next) = mask.iter().find_map(|token| grammar.step(state, token)) else {
                break;
            };
            state = next;
        }
        Ok(())
    });
    let judge = judge.expect("there is room for a thread");
    judge.join().expect("no source makes the library panic")
}

fn pattern(source: &str) -> String {
    format!(r#"{{"type": "string", "pattern": "{source}"}}"#)
}

/// Passes if there is a result: an overflow would have ended the process.
fn check(name: &str, depth: usize, reader: Reader, source: String) {
    if source.len() > Limits::default().source_bytes {
        return;
    }
    // The cost of masks in deep languages is tested elsewhere.
    let steps = if depth <= 100 { 4 } else { 0 };
    let Err(problems) = outcome(reader, source, steps) else {
        return;
    };
    assert!(
        !problems.is_empty(),
        "{name} of {depth}: an error without a problem"
    );
    for problem in problems {
        assert!(!problem.message.is_empty(), "{name} of {depth}: {problem:?}");
    }
}

#[test]
fn every_reader_survives_every_way_to_be_deep() {
    for form in forms::forms() {
        let deep = [100, BRACKETS, BRACKETS + 1, 512, 513, 3_000, 10_000, 100_000];
        for depth in deep.into_iter().filter(|&depth| depth < form.slow) {
            check(form.name, depth, form.reader, (form.source)(depth));
        }
    }
}

#[test]
fn schemas_inside_each_other_are_read_or_refused() {
    for depth in [100, 240, 600] {
        for (name, source) in forms::nested(depth) {
            check(&name, depth, Reader::Schema, source);
        }
    }
}

#[test]
fn chains_of_references_are_followed_or_refused() {
    let roots = ["flat/", "closed/", "closed items/", "not/"];
    for depth in [70, 1_000] {
        let chains = forms::chains(depth).into_iter();
        let chains = chains.filter(|(name, _)| roots.iter().any(|root| name.starts_with(root)));
        for (name, source) in chains.filter(|(name, _)| name.ends_with("/object")) {
            check(&name, depth, Reader::Schema, source);
        }
    }
}

fn ebnf(text: &str) -> Result<(), Vec<Problem>> {
    outcome(Reader::Ebnf, text.to_owned(), 4)
}

#[test]
fn operators_nest_like_brackets() {
    for operator in ["*", "+", "{2}", "{0,3}", " +"] {
        let rule = |times: usize| format!("root ::= \"a\" root \"b\"{} | \"c\"", operator.repeat(times));
        // Nested counts need too many states, but that is another limit.
        let deep = ebnf(&rule(512)).err().unwrap_or_default();
        assert!(
            !deep.iter().any(|problem| problem.message.contains("nesting")),
            "{deep:?}"
        );
        assert!(deep.is_empty() || operator.starts_with('{'), "{deep:?}");
        let problems = ebnf(&rule(513)).expect_err("too deep");
        assert_eq!(problems.len(), 1, "{operator}: {problems:?}");
        assert_eq!(problems[0].kind, ProblemKind::Limit);
        assert!(problems[0].message.contains("`nesting` is 512"), "{problems:?}");
        let column = rule(513).find("\"b\"").expect("it is there") + 4 + 512 * operator.len();
        let column = column + (operator.len() - operator.trim_start().len());
        assert_eq!(problems[0].place, Place::LineColumn { line: 1, column });
    }
}

#[test]
fn operators_and_brackets_are_counted_together() {
    let rule = |brackets: usize, operators: usize| {
        let close = [")", &"*".repeat(operators)].concat();
        format!(
            "root ::= root {} \"b\" | \"c\"",
            "(\"a\" ".repeat(brackets) + &close.repeat(brackets)
        )
    };
    assert_eq!(ebnf(&rule(128, 3)), Ok(()));
    assert_eq!(ebnf(&rule(249, 1)), Ok(()));
    let problems = ebnf(&rule(129, 3)).expect_err("516 levels");
    assert!(problems[0].message.contains("`nesting` is 512"), "{problems:?}");
}

#[test]
fn a_chain_of_references_beside_what_is_not_evaluated_is_followed() {
    let names = |depth| {
        let chained = forms::chains(depth).into_iter();
        chained.filter(|(name, _)| name.starts_with("closed/") && name.ends_with("/object"))
    };
    for (name, source) in names(1_000) {
        let result = outcome(Reader::Schema, source, 0);
        if [
            "closed/ref/object",
            "closed/allOf/object",
            "closed/anyOf/object",
            "closed/oneOf/object",
        ]
        .contains(&name.as_str())
        {
            assert_eq!(result, Ok(()), "{name}");
        }
        if name == "closed/then/object" {
            let problems = result.expect_err("too deep to be told apart");
            assert_eq!(problems[0].kind, ProblemKind::Limit);
            assert!(problems[0].message.contains("`nesting`"), "{problems:?}");
            assert!(matches!(&problems[0].place, Place::Pointer(pointer) if pointer.starts_with("/$defs/a")));
        }
    }
}

#[test]
fn many_problems_are_placed_in_one_walk_through_the_text() {
    let undefined = "root ::= \"a\"\n".to_owned() + &" b\n".repeat(100_000);
    let problems = ebnf(&undefined).expect_err("nothing is defined");
    assert_eq!(problems.len(), 100_000);
    let last = Place::LineColumn {
        line: 100_001,
        column: 2,
    };
    assert_eq!(problems[99_999].place, last);
}
