//! Tests of what the dialect accepts, how it is lowered, and the messages for texts that are refused.

use super::*;
use lexiform_automata::grammar::{Expr, Part};

fn read(text: &str) -> Cfg {
    as_written(text, &Limits::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn problems(text: &str) -> Vec<String> {
    let error = lower(text, &Limits::default()).expect_err(text);
    error.problems.iter().map(ToString::to_string).collect()
}

fn body(cfg: &Cfg, rule: usize) -> &Expr {
    cfg.expr(cfg.rules[rule].body)
}

#[test]
fn every_way_to_define_a_rule_is_the_same() {
    for text in [
        "a ::= \"x\" b  b ::= \"y\"",
        "a = \"x\", b; b = \"y\";",
        "a: 'x' b\nb: 'y'",
        "a := #x78 b b := #x79",
    ] {
        let cfg = read(text);
        assert_eq!(cfg.rules.len(), 2, "{text}");
        assert_eq!(
            cfg.expr(cfg.rules[1].body),
            &Expr::Bytes((*b"y").into()),
            "{text}"
        );
        assert!(
            matches!(body(&cfg, 0), Expr::Seq(parts) if parts.len() == 2),
            "{text}"
        );
    }
}

#[test]
fn the_start_is_root_or_start_or_the_first_rule() {
    let name = |text: &str| {
        let cfg = read(text);
        cfg.rules[cfg.start.index()].name.clone()
    };
    assert_eq!(name("a ::= 'x' start ::= a root ::= a"), "root");
    assert_eq!(name("a ::= 'x' start ::= a"), "start");
    assert_eq!(name("b ::= a a ::= 'x'"), "b");
}

#[test]
fn comments_and_points_are_told_apart() {
    let cfg = read("# first\na ::= #x41 // (((\n (* [ *) /* \" */ 'b' # )))\n #x43");
    assert_eq!(body(&cfg, 0), &Expr::Bytes((*b"AbC").into()));
}

#[test]
fn escapes_are_characters() {
    let cfg = read(r#"a ::= "\n\t\"\\\x41\u00e9\ud83d\ude00\u{1F600}\U0001F600\/" '\''"#);
    let text = "\n\t\"\\Aé\u{1F600}\u{1F600}\u{1F600}/'";
    assert_eq!(body(&cfg, 0), &Expr::Bytes(text.as_bytes().into()));
}

#[test]
fn braces_count_or_repeat() {
    let cfg = read(r#"a ::= b{2,3} { "," b } b{2}{,4}  b ::= "x""#);
    let Expr::Seq(parts) = body(&cfg, 0) else {
        panic!("a sequence")
    };
    let repeats: Vec<_> = parts.iter().map(|&part| cfg.expr(part).clone()).collect();
    assert!(matches!(
        repeats[0],
        Expr::Repeat {
            min: 2,
            max: Some(3),
            ..
        }
    ));
    assert!(matches!(
        repeats[1],
        Expr::Repeat {
            min: 0,
            max: None,
            ..
        }
    ));
    assert!(matches!(
        repeats[2],
        Expr::Repeat {
            min: 0,
            max: Some(4),
            ..
        }
    ));
}

#[test]
fn a_long_counted_class_is_left_to_a_register() {
    let cfg = read("a ::= [a-z]{1,5000}");
    assert!(matches!(
        &cfg.regulars[0].parts[..],
        [Part::Units {
            min: 1,
            max: Some(5000),
            ..
        }]
    ));
    let cfg = read("a ::= [^\\]\\-#x41-#x43#]{2}");
    assert!(matches!(&cfg.regulars[0].parts[..], [Part::Match(_)]));
}

#[test]
fn all_problems_come_at_once_with_their_places() {
    let text = "a ::= b \"\\q\" [z-a]\na ::= /(/ c\nd ::= #xD800 'x'{3,2} /a(?=b)/i";
    assert_eq!(
        problems(text),
        [
            "line 1, column 7: rule `b` is not defined",
            "line 1, column 10: unknown escape `\\q`",
            "line 1, column 15: the first character of a range comes after its last",
            "line 2, column 1: rule `a` is defined twice",
            "line 2, column 8: unclosed group",
            "line 2, column 11: rule `c` is not defined",
            "line 3, column 7: `#xD800` is not a Unicode character",
            "line 3, column 17: the minimum of a repetition is greater than its maximum",
            "line 3, column 25: look-around is not in the dialect `rust`; the dialects `ecma` and `python` have it",
        ]
    );
}

#[test]
fn a_syntax_error_says_what_was_expected() {
    let unclosed = &problems("a ::= ( \"x\"")[0];
    assert!(
        unclosed.starts_with("line 1, column 12: expected `)`"),
        "{unclosed}"
    );
    assert!(problems("")[0].contains("empty"));
    assert!(problems("a ::= \"x")[0].starts_with("line 1, column 7"));
}

#[test]
fn deep_and_huge_sources_are_refused_by_name() {
    let deep = |n: usize| format!("a ::= {}'x'{}", "(".repeat(n), ")".repeat(n));
    assert_eq!(read(&deep(250)).rules.len(), 1);
    assert!(problems(&deep(251))[0].contains("`nesting`"));
    assert!(problems(&deep(200_000))[0].contains("`nesting`"));
    assert!(problems(&format!("a ::= {}", "{".repeat(100_000)))[0].contains("`nesting`"));
    assert!(problems(&" ".repeat(Limits::default().source_bytes + 1))[0].contains("`source_bytes`"));
    assert!(problems("a ::= 'xy'{1000000}")[0].contains("`repeat`"));
    assert!(problems("a ::= 'xy'{99999999999}")[0].contains("too large"));
    // Brackets in quotes, classes, expressions and comments do not nest.
    let flat = "a ::= '((' \"{{\" [({] /\\(\\{/ # ((\n".to_owned() + &"'('".repeat(300);
    assert_eq!(read(&flat).rules.len(), 1);
}
