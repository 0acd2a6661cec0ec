//! Tests of which texts grammars in GBNF derive, and of the messages for what is not GBNF.

use super::*;
use crate::notation::reading::tests::{
    THINK, accepts, check, check_random, check_refused, check_size, machine,
};

#[test]
fn grammars_derive_the_texts_that_they_should() {
    check(
        lower,
        &[
            (
                "root ::= \"a\" [b-d]+ . \"é\"",
                &["abcé", "abcdxé", "ab😀é"],
                &["aé", "abé", "b"],
            ),
            (
                "# c (\nroot ::= a |\n  b # x | y\na ::= \"1\"\nb ::= \"2\"\n\n",
                &["1", "2"],
                &["", "12"],
            ),
            (
                "root ::=\n\n a b\na ::= \"1\" \nb ::= \"2\"",
                &["12"],
                &["1", "2"],
            ),
            (
                "root ::= (\n \"a\" # no\n \"b\" |\n\"c\"\n)? \"d\"",
                &["abd", "cd", "d"],
                &["a", "abcd"],
            ),
            ("root ::= ws \"x\"\nws ::= | \" \" ws", &["x", "  x"], &["y"]),
            (
                "root ::= \"a\"{2} \"b\"{1,} \"c\"{,2} \"d\"{1,2}",
                &["aabd", "aabbccdd"],
                &["abd", "aabcccd"],
            ),
            ("root ::= \"a\" #x41\n", &["a"], &["aA"]),
            (
                r#"root ::= "\x41\u00e9\U0001F600\n\t\r\"\\\[\]" [\]\[^\x42-]"#,
                &["Aé😀\n\t\r\"\\[]B", "Aé😀\n\t\r\"\\[]-"],
                &["A"],
            ),
            ("root ::= [^a-c\\]]", &["d", "\n", "["], &["a", "]", ""]),
            ("root ::= \"a\nb\"", &["a\nb"], &["ab"]),
            ("root ::= \"(\" root \")\" | \"\"", &["", "(())"], &["(()"]),
            ("root ::= root \"a\" | \"b\"", &["b", "baa"], &["a"]),
            (
                "root ::= \"a\" *? [b] +\r\nx ::= root\r\n",
                &["ab", "aabb", "b"],
                &["a"],
            ),
            ("root ::= []? my_rule-2\nmy_rule-2 ::= \"\"", &[""], &["a"]),
        ],
    );
}

#[test]
fn tokens_stand_by_number_or_name() {
    let grammar = machine(lower, "root ::= <[97]> <think> !<think>+ !<[98]>");
    let (a, b, c) = (97, 98, 99);
    assert!(accepts(&grammar, [a, THINK, b, c]));
    assert!(accepts(&grammar, [a, THINK, a, b, b, c]));
    assert!(!accepts(&grammar, [a, THINK, a, b]));
    assert!(!accepts(&grammar, [b, THINK, a, c]));
    assert!(!accepts(&grammar, [a, b, c]));
}

#[test]
fn what_is_not_gbnf_is_refused_at_its_place() {
    check_refused(
        lower,
        &[
            ("a ::= \"x\"", &["line 1, column 1: there is no rule `root`"]),
            (
                "root ::= \"a\"\n  | \"b\"",
                &["line 2, column 3: a rule ends at the end of its line"],
            ),
            (
                "root ::= 'a'",
                &["line 1, column 10: texts are written in double quotes"],
            ),
            (
                "root ::= \"a\\q\" [b-a] c\nd ::= \"\\u12\"",
                &[
                    "line 1, column 12: unknown escape `\\q`",
                    "line 1, column 17: the first character of a range comes after its last",
                    "line 1, column 22: rule `c` is not defined",
                    "line 2, column 8: the escape needs 4 hexadecimal digits",
                ],
            ),
            ("root ::= \"a", &["line 1, column 10: this `\"` is never closed"]),
            ("root ::= [a", &["line 1, column 10: this `[` is never closed"]),
            ("root ::= (\"a\"\nb ::= \"c\"", &["line 2, column 3: expected"]),
            ("root = \"a\"", &["line 1, column 6: expected `::=`"]),
            (
                "root ::= \"a\"{3,2} \"b\"{}",
                &["line 1, column 23: expected `,` or a number"],
            ),
            (
                "root ::= \"a\"{3,2}",
                &["line 1, column 13: the minimum of a repetition"],
            ),
            (
                "root ::= \"ab\"{1000000}",
                &["line 1, column 14: the repetition count is too large"],
            ),
            (
                "root ::= \"ab\"{99999999999}",
                &["line 1, column 15: the repetition count is too large"],
            ),
            ("root ::= *", &["line 1, column 10: expected"]),
            (
                "root ::= <[99999999999]>",
                &["line 1, column 12: the number of the token is too large"],
            ),
            (
                "root ::= \"a\"\nroot ::= \"b\"",
                &["line 2, column 1: rule `root` is defined twice"],
            ),
        ],
    );
}

#[test]
fn deep_and_large_grammars_are_read_or_refused() {
    let rule = |name: &str, body: &str| format!("{name} ::= {body}\n");
    check_size(lower, rule, ("(", ")"), "\"a\"", &["?", "*", "+", "{2}", " ?"]);
    for text in ["<\">", "<[1]>\"", "[\"]"] {
        let deep = format!("root ::= {text} {}", "(".repeat(100_000));
        assert!(lower(&deep, &Limits::default()).is_err());
    }
}

#[test]
fn any_text_is_read_or_refused() {
    let fragments = [
        "root ::= ",
        "root ::= \"a\" ",
        "\"b\"",
        "[a-c]",
        "{1,2}",
        "<[5]>",
        "!<a>",
        "x ",
        "\nx ::= ",
    ];
    check_random(lower, ("root ::= ", "\n"), &fragments);
}
