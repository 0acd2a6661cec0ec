//! Expressions in Python's dialect match the same texts as `re.fullmatch`.
//!
//! `tests/data/python_regex.json` lists patterns, each with texts that Python 3.11 matches and texts that it
//! does not; the program in `tests/data/python_regex.py` wrote it. Patterns that Python refuses are refused
//! here.

use std::sync::Arc;

use lexiform::error::ProblemKind;
use lexiform::limits::Limits;
use lexiform::regex::Dialect;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Options, Source, compile};
use lexiform_syntax::regex::whole;
use serde_json::Value;

fn strings(value: &Value) -> Vec<&str> {
    let list = value.as_array().expect("a list");
    list.iter().map(|text| text.as_str().expect("a text")).collect()
}

#[test]
fn python_patterns_match_what_python_says() {
    let data: Value =
        serde_json::from_str(include_str!("../data/python_regex.json")).expect("the data is JSON");
    let vocabulary = Arc::new(Vocabulary::new(&[(TokenKind::Text, "a")], &[0]).expect("a vocabulary"));
    let options = Options {
        regex: Dialect::Python,
        ..Options::default()
    };
    let mut wrong = Vec::new();
    let (mut matched, mut unmatched) = (0, 0);
    for case in data["patterns"].as_array().expect("a list") {
        let pattern = case["pattern"].as_str().expect("a pattern");
        let (grammar, _) = match compile(Source::Regex(pattern), &vocabulary, &options) {
            Ok(compiled) => compiled,
            Err(error) => {
                let is_empty = error.problems[0].kind == ProblemKind::Unsatisfiable;
                if !is_empty || !strings(&case["yes"]).is_empty() {
                    wrong.push(format!("{pattern}: {error}"));
                }
                continue;
            }
        };
        for (texts, expected) in [(&case["yes"], true), (&case["no"], false)] {
            for text in strings(texts) {
                let state = grammar.step_bytes(grammar.start(), text.as_bytes());
                if state.is_some_and(|state| grammar.is_accepting(state)) != expected {
                    wrong.push(format!("{pattern} and {text:?}: Python says {expected}"));
                }
                matched += usize::from(expected);
                unmatched += usize::from(!expected);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(matched > 300 && unmatched > 300, "{matched} {unmatched}");
}

#[test]
fn what_python_refuses_is_refused_with_its_place() {
    let data: Value =
        serde_json::from_str(include_str!("../data/python_regex.json")).expect("the data is JSON");
    for pattern in strings(&data["refused"]) {
        let error = whole(pattern, Dialect::Python, &Limits::default()).expect_err(pattern);
        assert_eq!(error.kind, ProblemKind::Syntax, "{pattern}: {error}");
        assert!(error.column.is_some(), "{pattern}: {error}");
    }
}

#[test]
fn what_is_not_regular_is_refused_by_name() {
    let named = [
        (r"(a)\1", "backreferences are not supported at column 4"),
        (r"(?P<x>a)(?P=x)", "backreferences are not supported at column 9"),
        (r"(?>a+)b", "atomic groups are not supported at column 1"),
        (r"a++b", "possessive quantifiers are not supported at column 2"),
        (
            r"(a)?(?(1)b|c)",
            "conditions on groups are not supported at column 5",
        ),
        (r"(?a)abc", "the flag `a` is not supported at column 3"),
        (r"\N{EM DASH}", "characters by name are not supported at column 1"),
    ];
    for (pattern, message) in named {
        let error = whole(pattern, Dialect::Python, &Limits::default()).expect_err(pattern);
        assert_eq!(
            (error.kind, error.to_string().as_str()),
            (ProblemKind::Unsupported, message)
        );
    }
}

#[test]
fn patterns_of_strangers_are_bounded() {
    let limits = Limits::default();
    let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
    let nested = format!("{}a{}", "(?:b|".repeat(249), ")*".repeat(249));
    let long_name = format!("(?P<{}>a)", "é".repeat(100_000));
    for pattern in [
        &deep,
        &nested,
        &long_name,
        &"[".repeat(10_000),
        &r"[\w]".repeat(200_000),
        &"a{".repeat(100_000),
    ] {
        // Whether it is refused or not, it ends.
        let _ = whole(pattern, Dialect::Python, &limits);
    }
    let error = whole("a{3}{2}", Dialect::Python, &limits).expect_err("twice");
    assert_eq!(error.to_string(), "a repetition cannot be repeated at column 5");
    let error = whole("a{4294967295}", Dialect::Python, &limits).expect_err("too often");
    assert_eq!(error.kind, ProblemKind::Limit);
}
