//! Tests of which texts grammars for pest derive, and of the messages for what is not in their notation.

use super::*;
use crate::notation::reading::tests::{check, check_random, check_refused, problems};

fn lower(text: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    super::lower(text, None, limits)
}

/// The grammar of JSON in the book of pest.
const JSON: &str = r#"
//! JSON
json = _{ SOI ~ (object | array) ~ EOI }
object = { "{" ~ pair ~ ("," ~ pair)* ~ "}" | "{" ~ "}" }
pair = { string ~ ":" ~ value }
array = { "[" ~ value ~ ("," ~ value)* ~ "]" | "[" ~ "]" }
value = _{ object | array | string | number | boolean | null }
/// Texts.
string = ${ "\"" ~ inner ~ "\"" }
inner = @{ char* }
char = {
    !("\"" | "\\") ~ ANY
    | "\\" ~ ("\"" | "\\" | "/" | "b" | "f" | "n" | "r" | "t")
    | "\\" ~ ("u" ~ ASCII_HEX_DIGIT{4})
}
number = @{ "-"? ~ ("0" | ASCII_NONZERO_DIGIT ~ ASCII_DIGIT*) ~ ("." ~ ASCII_DIGIT*)? ~ (^"e" ~ ("+" | "-")? ~ ASCII_DIGIT+)? }
boolean = @{ ("true" | "false") ~ !ASCII_ALPHANUMERIC }
null = { "null" }
WHITESPACE = _{ " " | "\t" | "\r" | "\n" }
COMMENT = _{ "/*" ~ (!"*/" ~ ANY)* ~ "*/" }
"#;

#[test]
fn grammars_derive_the_texts_that_they_should() {
    check(
        lower,
        &[
            (
                JSON,
                &[
                    "[]",
                    " { \"a\\u12aF\" : [1, -0.5E+3 ,true]/* * */}\n",
                    "[\"/* */\", /* é */ null]",
                ],
                &[
                    "[01]",
                    "[truex]",
                    "\"a\"",
                    "[1 .5]",
                    "[/* */ */]",
                    "[- 1]",
                    "{\"a\":1,}",
                ],
            ),
            (
                "a = { b? ~ c* ~ d+ } b = { \"b\" } c = { \"c\" } d = { \"d\" }",
                &["d", "bccdd"],
                &["", "b"],
            ),
            (
                "a = { \"x\"{2} ~ \"y\"{,2} ~ \"z\"{1,} ~ 'a'..'c'{1,2} }",
                &["xxza", "xxyyzzcb"],
                &["xza", "xxyyyza"],
            ),
            (
                "a = { | \"x\\u{e9}\\x41\\0\\'\" | ^\"kÉ\" }",
                &["xéA\0'", "KÉ"],
                &["ké", "\u{212a}É"],
            ),
            (
                "a = { #tag = \"x\" ~ b } b = { LOWERCASE_LETTER ~ HAN }",
                &["xé中"],
                &["xÉ中"],
            ),
        ],
    );
}

#[test]
fn white_space_stands_between_parts_of_rules_that_are_not_atomic() {
    let rules = "WHITESPACE = _{ \" \" } b = { \"x\" ~ \"y\" } c = !{ \"x\" ~ \"y\" } d = _{ \"-\" }";
    let with = |start: &str| format!("{start} {rules}");
    check(
        lower,
        &[
            (&with("a = { b ~ \";\" }"), &["xy;", "x  y ;"], &[" xy;", "xy; "]),
            (&with("a = @{ b ~ \";\" }"), &["xy;"], &["x y;", "xy ;"]),
            (
                &with("a = ${ c ~ \";\" ~ b }"),
                &["x y;xy"],
                &["x y ;xy", "xy;x y"],
            ),
            (&with("a = { SOI ~ d* ~ EOI }"), &["", " ", " - -- "], &["-x"]),
            (
                &with("a = { d{2} ~ d? ~ d{1,2} }"),
                &["- - - -", "-----"],
                &["- - -", "- "],
            ),
            (&with("a = @{ e } e = { b | b ~ c }"), &["xy"], &["x y", "xyx y"]),
        ],
    );
}

#[test]
fn alternatives_are_read_in_order_and_repetitions_as_far_as_they_go() {
    check(
        lower,
        &[
            ("a = { \"a\" | \"ab\" }", &["a"], &["ab"]),
            ("a = { (\"a\" | \"ab\") ~ \"c\" }", &["ac"], &["abc"]),
            ("a = { \"a\"* ~ \"a\" | \"b\" }", &["b"], &["a", "aa"]),
            (
                "a = { \"a\"{1,2} ~ \"ab\"? }",
                &["a", "aa", "aaab"],
                &["ab", "aaa"],
            ),
            ("a = { (\"a\" ~ \"b\")? ~ \"ac\" }", &["ac", "abac"], &["ab"]),
            (
                "a = { (!\"*/\" ~ ANY)* ~ \"*/\" }",
                &["*/", "x**/", "/*/"],
                &["*/*/", "*"],
            ),
            (
                "a = { (!\"aa\" ~ ANY)* ~ \"aa\" }",
                &["aa", "baa", "abaa"],
                &["aaa", "xaaa"],
            ),
            ("a = { !\"if\" ~ 'a'..'z'+ }", &["i", "fi"], &["if", "ifx"]),
            (
                "a = { !(k ~ !l) ~ l+ } k = { \"if\" | \"in\" } l = { 'a'..'z' }",
                &["i", "ifx", "int"],
                &["if", "in", ""],
            ),
            (
                "a = { &(\"a\" ~ ANY) ~ ('a'..'c')+ }",
                &["ab", "aa", "acc"],
                &["a", "ba"],
            ),
            (
                "a = { (!NEWLINE ~ ANY)* ~ NEWLINE }",
                &["\n", "x\r\n"],
                &["x", "\n\n", "\r\r\n"],
            ),
            ("a = { &EOI | \"a\" }", &["", "a"], &["b"]),
            (
                "a = { k ~ (\" \"* ~ k)* } k = @{ \"a\" ~ !\"b\" | \"ab\" ~ !\"c\" }",
                &["ab a", "a"],
                &["abc", "aba b"],
            ),
            // Around recursive rules, the order of alternatives is left open.
            ("a = { \"(\" ~ a ~ \")\" | \"x\" } ", &["((x))"], &["(x"]),
        ],
    );
}

#[test]
fn the_end_of_the_text_is_where_it_is_asked_for() {
    check(
        lower,
        &[
            (
                "a = { line* } line = { \"x\" ~ (NEWLINE | EOI) }",
                &["", "x", "x\nx", "x\n"],
                &["xx", "\n"],
            ),
            (
                "a = { line+ ~ \"y\"? } line = { \"x\" ~ (\"-\" | EOI) }",
                &["x", "x-y", "x-x"],
                &["xy", "", "y"],
            ),
            (
                "a = { SOI ~ b ~ EOI ~ EOI } b = { \"x\" ~ b? }",
                &["x", "xx"],
                &[""],
            ),
            ("a = { EOI ~ \"x\" | \"y\" }", &["y"], &["x", ""]),
        ],
    );
    let found = super::lower("a = { \"x\" } b = { \"y\" }", Some("b"), &Limits::default());
    assert_eq!(found.expect("a grammar").rules.len(), 1);
    let error = super::lower("file = { \"x\" }", Some("fiel"), &Limits::default()).expect_err("no rule");
    assert!(error.to_string().contains("did you mean `file`"), "{error}");
}

#[test]
fn what_is_not_supported_is_refused_at_its_place() {
    check_refused(
        lower,
        &[
            ("a = { \"x }", &["line 1, column 7: this `\"` is never closed"]),
            (
                "a = { \"x\" /* }",
                &["line 1, column 11: this `/*` is never closed"],
            ),
            ("a = { (\"x\" }", &["line 1, column 12: expected"]),
            ("a ::= \"x\"", &["line 1, column 3: expected `=`"]),
            (
                "a = { \"x\", \"y\" }",
                &["line 1, column 10: parts of a sequence are separated by `~`"],
            ),
            (
                "a = { \"x\" / \"y\" }",
                &["line 1, column 11: alternatives are separated by `|`"],
            ),
            (
                "a = { b ~ PEEK ~ PUSH(\"x\") ~ PEEK[..] }\na = { 'z'..'a' ~ \"\\q\" ~ \"x\"{2,1} }\nANY = { \"x\" }",
                &[
                    "line 1, column 7: rule `b` is not defined",
                    "line 1, column 11: `PEEK` uses the stack",
                    "line 1, column 18: `PUSH` uses the stack",
                    "line 1, column 30: `PEEK` uses the stack",
                    "line 2, column 1: rule `a` is defined twice",
                    "line 2, column 7: the first character of a range",
                    "line 2, column 19: unknown escape",
                    "line 2, column 28: the minimum",
                    "line 3, column 1: `ANY` is built in",
                ],
            ),
            (
                "a = { \"x\" ~ !b ~ c }\nb = { \"(\" ~ b ~ \")\" | \"x\" }\nc = { 'a'..'z' ~ (c | d) } d = { \"-\" ~ !\"x\" }",
                &["line 1, column 13: this look-ahead asks for `b`"],
            ),
            (
                "a = { b ~ a | \"x\" }\nb = { \"-\" ~ !\"x\" }",
                &["line 2, column 13: what this look-ahead finds depends on what follows"],
            ),
            ("a = { \"x\" ~ SOI }", &["line 1, column 13: `SOI`"]),
        ],
    );
}

#[test]
fn deep_and_large_grammars_are_read_or_refused() {
    let small = |text: String| {
        let small = std::thread::Builder::new().stack_size(1 << 20);
        let thread = small.spawn(move || lower(&text, &Limits::default()).map(|cfg| cfg.rules.len()));
        thread.expect("a thread").join().expect("it ends")
    };
    let deep = |depth: usize| format!("a = {{ {}\"x\"{} }}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(small(deep(250)), Ok(1));
    for text in [deep(251), deep(100_000)] {
        assert!(problems(lower, &text)[0].contains("`nesting`"));
    }
    for operator in ["?", "*", "+", "{2}"] {
        let text = format!("a = {{ \"x\"{} }}", operator.repeat(50_000));
        assert!(small(text).is_err(), "{operator}");
        let text = format!(
            "a = {{ {}\"x\"{} }} WHITESPACE = {{ \" \" }}",
            "(".repeat(40),
            format!("{operator})").repeat(40)
        );
        drop(small(text));
    }
    assert!(small(format!("a = {{ {}\"x\" ~ \"x\" }}", "!".repeat(50_000))).is_err());
    drop(small(format!("a = {{ {}\"x\" ~ \"x\" }}", "!".repeat(400))));
    assert!(small("a = { \"x\" | !(!a ~ ANY)* }".to_owned()).is_err());
    assert!(small(format!("a = {{ \"x\" {}", "/*".repeat(100_000))).is_err());
    let many: String = (0..10_000)
        .map(|n| format!("r{n} = {{ \"{n}\" | r{} }}\n", n + 1))
        .collect();
    drop(small(many + "r10000 = { LETTER }"));
    let doubled: String = (0..60)
        .map(|n| format!("r{n} = {{ r{m}? ~ r{m}* }}\n", m = n + 1))
        .collect();
    drop(small(doubled + "r60 = { \"x\" | \"xy\" }"));
    assert!(problems(lower, &" ".repeat(Limits::default().source_bytes + 1))[0].contains("`source_bytes`"));
    assert!(problems(lower, " \n\t")[0].contains("empty"));
}

#[test]
fn any_text_is_read_or_refused() {
    let fragments = [
        "\"b\"",
        "^\"c\"",
        "'a'..'c'",
        "ANY",
        "EOI",
        " ~ ",
        " a ",
        "}\nb = @{",
        "b",
        "{1,2}",
        "/* a */",
    ];
    check_random(lower, ("a = { \"x\"", "}"), &fragments);
}
