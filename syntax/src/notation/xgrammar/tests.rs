//! Tests of which texts XGrammar's EBNF derives, and of the messages for what is refused.

use super::*;
use crate::notation::reading::tests::{accepts, check, check_random, check_refused, check_size, machine};

#[test]
fn grammars_derive_the_texts_that_they_should() {
    check(
        lower,
        &[
            (
                "root ::= a.b | # (\n  \"x\" [0-9]{2,} a.b ::= \"y\" ( )",
                &["y", "x12", "x123"],
                &["x1", "xy"],
            ),
            (
                r#"root ::= "\"\\\/\'\?\n\a\e\x1F600\u00e9\U0001F600" [\x41-\x43\]\-\^] [^] [^\n]?"#,
                &["\"\\/'?\n\u{7}\u{1b}😀é😀A\nx", "\"\\/'?\n\u{7}\u{1b}😀é😀-x"],
                &["\"\\/'?\n\u{7}\u{1b}😀é😀Dx"],
            ),
            (
                "root ::= (\"a\"+)? Token? \"b\"{0}\nToken ::= \"c\"",
                &["", "c", "aac"],
                &["b"],
            ),
            (
                "root ::= Regex(\"a|b{2,}$\", json_string=false) \"c\"",
                &["ac", "bbbc"],
                &["bc", "c"],
            ),
        ],
    );
}

#[test]
fn expressions_and_runs_stand_for_texts() {
    check(
        lower,
        &[
            (
                r#"root ::= Regex("^a.\\s[\\s,]\\S\\d?$")"#,
                &["a\n ,é", "ab\t\u{b}x1"],
                &["a\n\u{a0},x", "ab  \n", "ab\u{2028} x"],
            ),
            (r#"root ::= Regex("a\\$|b\\\\$")"#, &["a$", "b\\"], &["a", "b\\$"]),
            (
                "root ::= Substring(\"ab\", \"c\", \"ab\") \".\"",
                &[".", "ab.", "abc.", "cab.", "c.", "abcab."],
                &["b.", "ac.", "abab."],
            ),
            (
                "root ::= a \"c\"\na ::= \"x\" | \"y\" (= \"b\")",
                &["xc", "yc"],
                &["xb", "xbc"],
            ),
        ],
    );
}

#[test]
fn tags_begin_their_rules_where_they_are_complete() {
    check(
        lower,
        &[
            (
                "root ::= TagDispatch((\"<a>\", a), (\"<b>\", b))\na ::= \"1\"\nb ::= \"2\"",
                &["", "x < <a", "x<a>1", "<a>1y<b>2 é <", "<<a>1"],
                &["<a>", "x<a>2", "<a>1<b>1", "x<a>"],
            ),
            (
                "root ::= t \"</s>\" t ::= TagDispatch((\"aa\", a), excludes=(\"</s>\", \"q\"), loop_after_dispatch=false,) a ::= \"b\"",
                &["</s>", "xa</s>", "xaab</s>", "aab</s>"],
                &["", "q</s>", "xaaab</s>", "aabx</s>", "</s></s>", "aaa</s>"],
            ),
            (
                "root ::= TagDispatch((\"xq\", a), (\"y\", a), excludes=(\"q\",)) a ::= \"b\"",
                &["x", "yb"],
                &["xqb", "xq", "q"],
            ),
            (
                "root ::= TagDispatch((\"a\", a), (\"a\", b)) \"x\" a ::= \"1\" b ::= \"2\"",
                &["a1x", "-a2x"],
                &["a3x", "ax"],
            ),
            ("root ::= TagDispatch(excludes=(\"x\",))", &["", "abc"], &["axb"]),
        ],
    );
}

#[test]
fn tokens_stand_by_number() {
    let grammar = machine(lower, "root ::= Token(97, 98) ExcludeToken(97) \"c\"");
    assert!(accepts(&grammar, [97, 98, 99]) && accepts(&grammar, [98, 257, 99]));
    assert!(!accepts(&grammar, [97, 97, 99]) && !accepts(&grammar, [99, 98, 99]));
    let text = "root ::= TokenTagDispatch((97, a), (98, b), excludes=(99,)) a ::= \"c\" b ::= \"d\"";
    let grammar = machine(lower, text);
    for accepted in [&[][..], &[100, 257], &[97, 99], &[1, 97, 99, 2, 98, 100]] {
        assert!(accepts(&grammar, accepted.iter().copied()), "{accepted:?}");
    }
    for rejected in [&[99][..], &[97], &[97, 100], &[98, 99]] {
        assert!(!accepts(&grammar, rejected.iter().copied()), "{rejected:?}");
    }
}

#[test]
fn what_is_not_supported_is_refused_at_its_place() {
    check_refused(
        lower,
        &[
            ("a ::= \"x\"", &["line 1, column 1: there is no rule `root`"]),
            (
                "root[max_tokens=3, capture=\"x\"] ::= \"a\" c\nb[lazy] ::= Substring(b)",
                &[
                    "line 1, column 6: the option `max_tokens` of rules",
                    "line 1, column 20: the option `capture` of rules",
                    "line 1, column 41: rule `c` is not defined",
                    "line 2, column 3: the option `lazy` of rules",
                    "line 2, column 23: `Substring` takes a text",
                ],
            ),
            (
                "root ::= TagDispatch((\"a\", b), stop_str=(\"x\",)) | TagDispatch(\"a\") | TagDispatch((\"\", root))",
                &[
                    "line 1, column 28: rule `b` is not defined",
                    "line 1, column 41: `stop_str` of `TagDispatch` is not supported",
                    "line 1, column 63: `TagDispatch` takes pairs",
                    "line 1, column 83: `TagDispatch` takes a text here",
                ],
            ),
            (
                "root ::= Token(\"a\") | Token(99999999999) | Token() | TokenTagDispatch((1, root), excludes=(1,))",
                &[
                    "line 1, column 16: `Token` takes the number",
                    "line 1, column 29: the number of the token is too large",
                    "line 1, column 44: `Token` takes the numbers",
                    "line 1, column 92: `TokenTagDispatch` takes only tokens",
                ],
            ),
            (
                "root ::= Regex(\"(\") Regex(\"a\", json_string=true) Regex(\"a\", flags=\"i\")",
                &[
                    "line 1, column 16:",
                    "line 1, column 21: `json_string`",
                    "line 1, column 67: `flags` of `Regex`",
                ],
            ),
            (
                "root ::= \"a\"++",
                &["line 1, column 14: a part has one operator"],
            ),
            ("root ::= \"a\"{,2}", &["line 1, column 14: expected a number"]),
            (
                "root ::= 'a'",
                &["line 1, column 10: texts are written in double quotes"],
            ),
            ("root ::= .", &["line 1, column 10: any character is written"]),
            (
                "root ::= \"a\\q\" [\\d]",
                &[
                    "line 1, column 12: unknown escape",
                    "line 1, column 17: unknown escape",
                ],
            ),
            ("root ::= \"a\nb\"", &["line 1, column 10: expected"]),
            ("root ::= (\"a\"", &["line 1, column 14: expected"]),
            (
                "root ::= \"a\" root ::= \"b\"",
                &["line 1, column 14: rule `root` is defined twice"],
            ),
        ],
    );
}

#[test]
fn deep_and_large_grammars_are_read_or_refused() {
    let rule = |name: &str, body: &str| format!("{name} ::= {body}\n");
    check_size(lower, rule, ("(", ")"), "\"a\"", &[" \"b\"?", "| \"b\""]);
    let tuples = format!("root ::= Token({}", "(".repeat(100_000));
    assert!(lower(&tuples, &Limits::default()).is_err());
    for text in [
        "r[stop=\"]\"] ::= ",
        "r[x=\\] ::= ",
        "r[x # ]\" \n] ::= ",
        "r ::= [\\\"]",
    ] {
        let deep = format!("{text} {}", "(".repeat(100_000));
        assert!(lower(&deep, &Limits::default()).is_err());
    }
}

#[test]
fn macros_with_many_texts_are_read_or_refused() {
    let call = |name: &str, text: fn(usize) -> String, count: usize| {
        let texts: Vec<String> = (0..count).map(text).collect();
        format!("root ::= {name}({})", texts.join(", "))
    };
    let word = |n: usize| format!("\"w{n} \"");
    let grammar = machine(lower, &call("Substring", word, 2_000));
    let accepts = |text: &str| accepts(&grammar, text.bytes().map(u32::from));
    assert!(accepts("w998 w999 w1000 w1001 ") && accepts("w1999 ") && !accepts("w3 w5 "));
    let tag = |n: usize| format!("(\"<tag{n}>\", root)");
    machine(lower, &call("TagDispatch", tag, 200));
    let token = |n: usize| format!("({n}, root)");
    assert!(lower(&call("TokenTagDispatch", token, 10_000), &Limits::default()).is_ok());
    check_refused(
        lower,
        &[
            (
                &call("Substring", word, 2_001),
                &["line 1, column 10: `Substring` has more"],
            ),
            (
                &call("TagDispatch", tag, 40_000),
                &["line 1, column 10: `TagDispatch` has more"],
            ),
        ],
    );
}

#[test]
fn any_text_is_read_or_refused() {
    let fragments = [
        "root ::= ",
        "root ::= \"a\" ",
        "\"b\"",
        "[^a-c]",
        "{1,2}",
        "(= ",
        "Token(1) ",
        "TagDispatch((\"a\", root)",
        "excludes=(\"b\",)",
        "Regex(\"a|b\") ",
        "Substring(\"a\", \"b\") ",
        "\nx[lazy] ::= ",
    ];
    check_random(lower, ("root ::= ", ""), &fragments);
}
