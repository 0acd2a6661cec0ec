//! Tests of which texts grammars of the W3C derive, and of the messages for what is not in their notation.

use super::*;
use crate::notation::reading::tests::{check, check_random, check_refused, check_size};

/// Rules of the specification of XML 1.0.
const XML: &str = r#"
[1]    document ::= element Misc*
[2]    Char     ::= #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]
/* any Unicode character, [excluding (the surrogate blocks */
[3]    S        ::= (#x20 | #x9 | #xD | #xA)+
[4]    NameStartChar ::= ":" | [A-Z] | "_" | [a-z] | [#xC0-#xD6]
[4a]   NameChar ::= NameStartChar | "-" | "." | [0-9] | #xB7
[5]    Name     ::= NameStartChar (NameChar)*
[10]   AttValue ::= '"' ([^<&"])* '"' |  "'" ([^<&'])* "'"
[14]   CharData ::= [^<&]* - ([^<&]* ']]>' [^<&]*)
[15]   Comment  ::= '<!--' ((Char - '-') | ('-' (Char - '-')))* '-->'
[16]   PI       ::= '<?' PITarget (S (Char* - (Char* '?>' Char*)))? '?>'
[17]   PITarget ::= Name - (('X' | 'x') ('M' | 'm') ('L' | 'l'))
[27]   Misc     ::= Comment | PI | S
[39]   element  ::= EmptyElemTag
                  | STag content ETag  [ WFC: Element Type Match ]
                                       [ VC: Element Valid ]
[40]   STag     ::= '<' Name (S Attribute)* S? '>' [WFC: Unique Att Spec]
[41]   Attribute ::= Name Eq AttValue
[25]   Eq       ::= S? '=' S?
[42]   ETag     ::= '</' Name S? '>'
[43]   content  ::= CharData? ((element | PI | Comment) CharData?)*
[44]   EmptyElemTag ::= '<' Name (S Attribute)* S? '/>'
"#;

#[test]
fn grammars_derive_the_texts_that_they_should() {
    check(
        lower,
        &[
            (
                XML,
                &[
                    "<a/>",
                    "<a b='1' c = \"2\"><?p x?>t]]<!-- - --><À/></a>\n",
                    "<a></b>",
                ],
                &["<a>", "<a>]]></a>", "<a/><?xml ?>", "<a/><!-- -- -->", "<a b=1/>"],
            ),
            ("a ::= [^a-c\\] '\\n' \"'\"", &["d\\n'"], &["a\\n'", "\\\\n'"]),
            (
                "a ::= b? c*d+\nb::= 'b' c ::= 'c' d ::= \"d\"",
                &["d", "bccdd"],
                &["", "b"],
            ),
            ("a ::= [0-9]+ - '7' - '8'", &["1", "77"], &["7", "8", ""]),
            ("a ::= | 'x' (| 'y')", &["", "x", "xy"], &["y"]),
            (
                "a ::= [12] b\n[12] b ::= [#x41-#x43#]",
                &["1A", "2#"],
                &["1D", "12A"],
            ),
            ("a ::= 'x' [12]\nb ::= 'y'", &["x"], &["x1", "x2"]),
            ("a ::= 'x'a'y' | #x41", &["A", "xxAyy"], &["xA"]),
            ("a ::= b-c.d-'x'\nb-c.d ::= [a-z]", &["y"], &["x", "-"]),
        ],
    );
}

#[test]
fn what_is_in_another_notation_is_refused_at_its_place() {
    check_refused(
        lower,
        &[
            ("a ::= 'x", &["line 1, column 7: this `'` is never closed"]),
            ("a ::= [x", &["line 1, column 7: this `[` is never closed"]),
            ("a ::= ('x'\nb ::= 'y'", &["line 2, column 1: expected"]),
            ("a = 'x'", &["line 1, column 3: expected `::=`"]),
            ("a ::= 'x'{2}", &["line 1, column 10: a repetition is written"]),
            ("a ::= 'x' # y", &["line 1, column 11: a comment is written"]),
            ("a ::= .", &["line 1, column 7: any character is written"]),
            (
                "a ::= #xD800 [z-a]\n  b - c\na ::= 'x'",
                &[
                    "line 1, column 7: `#xD800` is not a Unicode character",
                    "line 1, column 15: the first character of a range",
                    "line 2, column 3: rule `b` is not defined",
                    "line 3, column 1: rule `a` is defined twice",
                ],
            ),
            (
                "a ::= b - 'x'\nb ::= ('x' b 'y')?",
                &["line 2, column 12: `b` calls itself"],
            ),
        ],
    );
}

#[test]
fn deep_and_large_grammars_are_read_or_refused() {
    let rule = |name: &str, body: &str| format!("{name} ::= {body}\n");
    check_size(lower, rule, ("(", ")"), "'a'", &["?", "*", "+", " - 'b'"]);
    for text in ["/* \" */", "\"'\"", "[\"]", "[ wfc: \" ]"] {
        let deep = format!("a ::= {text} {}", "(".repeat(100_000));
        assert!(lower(&deep, &Limits::default()).is_err());
    }
}

#[test]
fn any_text_is_read_or_refused() {
    let fragments = [
        "a ::= ",
        "a ::= 'x' ",
        "'b'",
        "[^a-c]",
        "#x41",
        "[ wfc: a ]",
        "[1] b ::= ",
        " b ",
        "/* a */",
    ];
    check_random(lower, ("a ::= ", ""), &fragments);
}
