//! Tests of which texts grammars in ABNF derive, and of the messages for what is not ABNF.

use super::*;
use crate::notation::reading::tests::{check, check_random, check_refused, check_size};

#[test]
fn grammars_derive_the_texts_that_they_should() {
    check(
        lower,
        &[
            (
                "a = 2DIGIT \"-\" 1*2HEXDIG *SP",
                &["12-f", "12-Fa  "],
                &["1-f", "12-", "12-abc"],
            ),
            (
                "a = \"ok\" / %s\"No\" / %i\"k1\"",
                &["ok", "oK", "No", "K1"],
                &["no", "\u{212a}1", "o\u{212a}"],
            ),
            (
                "a = %x41-43 %d66.67 %b1000001 %xe9",
                &["ABCAé", "CBCAé"],
                &["DBCAé", "ABAé"],
            ),
            (
                "a = [\"x\" [\"y\"]] (\"1\" / \"2\") ; no \"quote\n",
                &["1", "x2", "xy1"],
                &["y1", "x"],
            ),
            (
                "list = item *(\",\" Item)\nItem = \"a\"\nitem =/ \"b\"",
                &["a", "b,a", "A,B"],
                &["", "a,"],
            ),
            ("  a = \"1\"\n      \"2\"\n\n  ; x\n  b = a\n", &["12"], &["1"]),
            (
                "a = \"1\" ; x\r\n ; y\r\n / \"2\"\r\nb = a\r\n",
                &["1", "2"],
                &["12"],
            ),
            (
                "a = CRLF LWSP VCHAR\nvchar = \"v\"",
                &["\r\nv", "\r\n \r\n\tV"],
                &["\nv", "\r\nx"],
            ),
            (
                "a = \"\" *3\"a\" 0\"b\" 2*\"c\"",
                &["cc", "aaaccc"],
                &["aaaacc", "bcc", "c"],
            ),
            ("a = OCTET CHAR", &["ÿ\u{1}"], &["Āa", "a\0"]),
        ],
    );
}

#[test]
fn what_is_not_abnf_is_refused_at_its_place() {
    check_refused(
        lower,
        &[
            (
                "a = \"x\" | b",
                &["line 1, column 9: alternatives are separated by `/`"],
            ),
            (
                "a = 'x'",
                &["line 1, column 5: texts are written in double quotes"],
            ),
            ("a = \"x\"*", &["line 1, column 8: expected"]),
            (
                "a = \"x\"+",
                &["line 1, column 8: a repetition is written before its part"],
            ),
            ("a = \"x", &["line 1, column 5: this `\"` is never closed"]),
            ("a = (\"x\"", &["line 1, column 9: expected"]),
            ("a = \"x\"\n\"y\"", &["line 2, column 1: expected"]),
            ("a = \"x\" b = \"y\"", &["line 1, column 11: expected"]),
            ("a =/ \"x\"", &["line 1, column 1: `=/` adds to a rule"]),
            (
                "a = <prose> b %xD800\nA = %x42-41 3*2SP\n",
                &[
                    "line 1, column 5: `<prose>` is prose",
                    "line 1, column 13: rule `b` is not defined",
                    "line 1, column 15: `%xD800` has a number",
                    "line 2, column 1: rule `A` is defined twice",
                    "line 2, column 5: the first character of a range",
                    "line 2, column 13: the minimum of a repetition",
                ],
            ),
            (
                "a = 99999999999SP",
                &["line 1, column 5: the repetition count is too large"],
            ),
            (
                "a = 1*999999(SP SP)",
                &["line 1, column 5: the repetition count is too large; the limit `repeat`"],
            ),
            ("a = digits", &["line 1, column 5: rule `digits` is not defined"]),
        ],
    );
}

#[test]
fn deep_and_large_grammars_are_read_or_refused() {
    let rule = |name: &str, body: &str| format!("{name} = {body}\n");
    check_size(lower, rule, ("(", ")"), "\"a\"", &[" SP"]);
    check_size(lower, rule, ("[", "]"), "\"a\"", &[" /SP"]);
    let more = "a = SP\n".to_owned() + &"a =/ SP\n".repeat(50_000);
    assert!(lower(&more, &Limits::default()).is_ok());
    let deep = format!("a = SP ; \r{}", "(".repeat(100_000));
    assert!(lower(&deep, &Limits::default()).is_ok());
}

#[test]
fn any_text_is_read_or_refused() {
    let fragments = [
        "a = ",
        "a = \"x\" ",
        "\"b\"",
        "%x41-5A",
        "%d65.66",
        "2*3",
        "DIGIT",
        "\n b",
        "\r\n",
        "\na =/ ",
    ];
    check_random(lower, ("a = SP ", "\n"), &fragments);
}
