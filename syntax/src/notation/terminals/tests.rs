//! Tests which parts of grammars become terminals, and which stay.

use crate::notation::ebnf;
use lexiform_automata::grammar::{Cfg, Expr, ExprId, Part};
use lexiform_automata::limits::Limits;

/// Returns the rules of a grammar after the pass, one per line.
fn laid(source: &str) -> Vec<String> {
    laid_within(source, &Limits::default())
}

fn laid_within(source: &str, limits: &Limits) -> Vec<String> {
    let cfg = ebnf::lower(source, limits).unwrap_or_else(|error| panic!("{error}"));
    let rules = cfg.rules.iter();
    rules
        .map(|rule| format!("{} ::= {}", rule.name, shown(&cfg, rule.body)))
        .collect()
}

fn shown(cfg: &Cfg, id: ExprId) -> String {
    let all = |parts: &[ExprId], by: &str| {
        let parts: Vec<String> = parts.iter().map(|&part| shown(cfg, part)).collect();
        parts.join(by)
    };
    match cfg.expr(id) {
        Expr::Empty => "\"\"".into(),
        Expr::Bytes(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        Expr::Seq(parts) => all(parts, " "),
        Expr::Choice(parts) => format!("({})", all(parts, " | ")),
        Expr::Repeat { body, min, max } => format!("({}){{{min},{max:?}}}", shown(cfg, *body)),
        Expr::Rule(rule) => cfg.rules[rule.index()].name.clone(),
        Expr::Regular(regular) => match &cfg.regulars[regular.index()].parts[..] {
            [Part::Match(expression)] => format!("/{}/", **expression),
            _ => "/counted/".into(),
        },
        Expr::Special(name) | Expr::Marked(name) => name.to_string(),
        Expr::Tokens(set) => set.to_string(),
        Expr::Never | Expr::Validated(_) | Expr::ObjectList(_) => panic!("no test has these"),
    }
}

#[test]
fn a_string_is_what_is_between_its_quotes() {
    let source = r#"root ::= '"' char* '"' root "." | "." char ::= [^"\\] | "\\" ["\\n]"#;
    let expected = "root ::= (\"\\\"\" /(?:[\0-!\\#-\\[\\]-\u{10ffff}]|(?:\\\\[\"\\\\n]))*/ \"\\\"\" root \".\" | \".\")";
    assert_eq!(laid(source), [expected]);
}

#[test]
fn rules_that_repeat_themselves_are_repetitions() {
    let digits = r"/(?:[0-9][0-9]*)/";
    assert_eq!(
        laid("digits ::= [0-9] | digits [0-9]"),
        [format!("digits ::= {digits}")]
    );
    assert_eq!(laid("ws ::= [ \\t] ws | ''"), ["ws ::= /[\t ]*/"]);
    let both = laid("s ::= 'a' s | s 'b' | [0-9] | s");
    assert_eq!(both, ["s ::= /(?:a*[0-9]b*)/"]);
}

#[test]
fn rules_that_call_themselves_otherwise_stay() {
    for source in [
        "s ::= s s | [0-9]",
        "s ::= [0-9] s [0-9] | [a-f]",
        "s ::= [0-9] t | [a-f] t ::= s [0-9]",
        "s ::= (s | [0-9]) [a-f] | [0-9]",
    ] {
        let written = ebnf::as_written(source, &Limits::default()).expect("a grammar");
        assert_eq!(laid(source).len(), written.rules.len(), "{source}");
        assert!(laid(source)[0].contains('s'), "{source}");
    }
    // A rule that can never end is left for the message that says so.
    assert_eq!(laid("s ::= 'a' s"), ["s ::= \"a\" s"]);
}

#[test]
fn texts_stay_texts() {
    assert_eq!(
        laid("root ::= ('GET' | 'PUT') ' ' path | 'no' path ::= 'a' | 'b' 'c'"),
        [
            r#"root ::= (("GET" | "PUT") " " path | "no")"#,
            r#"path ::= ("a" | "bc")"#
        ]
    );
    assert_eq!(
        laid("root ::= 'v' [0-9]+ '.' [0-9]+ 'x'"),
        [r#"root ::= "v" /(?:[0-9]+\.[0-9]+)/ "x""#]
    );
    assert_eq!(
        laid("root ::= ('ab' | 'ba')+ "),
        [r#"root ::= /(?:(?:ab)|(?:ba))+/"#]
    );
}

#[test]
fn many_characters_are_joined_with_many_and_not_with_few() {
    assert_eq!(
        laid("root ::= name '=' name  name ::= [a-z_] [a-z0-9_]*"),
        ["root ::= name \"=\" name", "name ::= /(?:[_a-z][0-9_a-z]*)/"]
    );
    assert_eq!(
        laid("root ::= word ('.' word)*  word ::= [a-z]+"),
        ["root ::= word (\".\" word){0,None}", "word ::= /[a-z]+/"]
    );
    assert_eq!(
        laid("root ::= [ ]* [a-z]+ [ ]* [0-9]"),
        ["root ::= /(?: *[a-z]+)/ /(?: *[0-9])/"]
    );
}

#[test]
fn special_tokens_and_counts_are_no_part_of_a_terminal() {
    assert_eq!(
        laid("root ::= [0-9] <|a|> [0-9] [a-f]"),
        [r"root ::= /[0-9]/ <|a|> /(?:[0-9][a-f])/"]
    );
    assert_eq!(
        laid("root ::= ([0-9] [a-f]{3,900})*"),
        ["root ::= (/[0-9]/ /counted/){0,None}"]
    );
}

#[test]
fn what_would_be_large_stays_as_rules() {
    // The automaton distinguishes all sets of the last twelve letters.
    let source = "root ::= [ab]* 'a' [ab]{12} [ab]*";
    assert_eq!(laid("root ::= [ab]* 'a' [ab]{2}").len(), 1);
    assert!(laid(source)[0].contains(" \"a\" "), "{:?}", laid(source));
    let small = Limits {
        regular_bytes: 1 << 10,
        ..Limits::default()
    };
    let number = "root ::= [0-9]+ ('.' [0-9]+)?";
    assert!(laid(number)[0].starts_with("root ::= /(?:"));
    assert!(laid_within(number, &small)[0].starts_with("root ::= /[0-9]+/ ("));
    let deep: String = (0..300)
        .map(|rule| format!("r{rule} ::= [0-9] r{}\n", rule + 1))
        .collect();
    let rules = laid(&format!("{deep} r300 ::= [0-9]"));
    assert!(rules.len() > 200 && rules.len() < 300, "{} rules", rules.len());
}

#[test]
fn nothing_a_million_times_is_much() {
    let twice: String = (1..60)
        .map(|rule| format!("r{rule} ::= r{} r{}\n", rule - 1, rule - 1))
        .collect();
    let rules = laid(&format!("root ::= r59 [0-9]+ [a-f]  r0 ::= [0-9]?  {twice}"));
    assert!(rules[0].starts_with("root ::= r59 /"), "{}", rules[0]);
    let rules = laid(&format!("root ::= r59 [0-9]+ [a-f]  r0 ::= ''  {twice}"));
    assert!(rules[0].starts_with("root ::= r59 /"), "{}", rules[0]);
}

#[test]
fn rules_that_nobody_calls_are_kept() {
    let source = "root ::= digit digit  digit ::= [0-9]  other ::= digit <|a|>";
    let names: Vec<String> = laid(source)
        .iter()
        .map(|rule| rule[..rule.find(' ').unwrap_or(0)].to_owned())
        .collect();
    assert_eq!(names, ["root", "other", "digit"]);
}
