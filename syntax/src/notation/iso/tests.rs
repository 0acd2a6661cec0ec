//! Tests of which texts grammars in the notation of ISO/IEC 14977 derive, and of the messages for others.

use super::*;
use crate::notation::reading::tests::{check, check_random, check_refused, check_size};

/// The notation in itself, as section 8.1 of the standard gives it, without gaps and comments.
const ITSELF: &str = r#"
syntax = syntax rule, {syntax rule};
syntax rule = meta identifier, '=', definitions list, ';';
definitions list = single definition, {'|', single definition};
single definition = syntactic term, {',', syntactic term};
syntactic term = syntactic factor, ['-', syntactic exception];
syntactic exception = syntactic factor;
syntactic factor = [integer, '*'], syntactic primary;
syntactic primary = optional sequence | repeated sequence | grouped sequence
                  | meta identifier | terminal string | empty sequence;
optional sequence = '[', definitions list, ']';
repeated sequence = '{', definitions list, '}';
grouped sequence = '(', definitions list, ')';
terminal string = "'", character - "'", {character - "'"}, "'" | '"', character - '"', {character - '"'}, '"';
meta identifier = letter, {letter | decimal digit};
integer = decimal digit, {decimal digit};
empty sequence = ;
letter = 'a' | 'b' | 'c';
decimal digit = '0' | '1';
character = letter | decimal digit | "'" | '"' | ' ';
"#;

#[test]
fn grammars_derive_the_texts_that_they_should() {
    check(
        lower,
        &[
            (
                ITSELF,
                &["a=b;", "a=b,'c'|[1*{c}-a];b=;", "a=\"'\";"],
                &["a=b", "a='';", "a=b,,c", "a=(b;", "a='''';"],
            ),
            ("a = 3 * 'x', [\"y\"] . b = a.", &["xxx", "xxxy"], &["xx", "y"]),
            ("a = 'x' / 'y' ! 'z' (* | 'w' *) ;", &["x", "y", "z"], &["w", ""]),
            (
                "a = (/ 'x' /), (: 'y' :), ('z' | 'w');",
                &["z", "xw", "yyz"],
                &["x", "xxz"],
            ),
            ("a = { 'x' }-, b -; b = { 'y' };", &["xy", "xxyy"], &["x", "y"]),
            ("a = b - ('x' | 'y'); b = 'x' | 'z' | 'y';", &["z"], &["x", "y"]),
            ("two\n  words = one  word;\none word = '\\n';", &["\\n"], &["\n"]),
            ("a = | 'x', a;", &["", "xx"], &["y"]),
            ("a = 0 * 'x', 1 * 'y';", &["y"], &["xy"]),
        ],
    );
}

#[test]
fn what_is_in_another_notation_is_refused_at_its_place() {
    check_refused(
        lower,
        &[
            ("a = 'x", &["line 1, column 5: this `'` is never closed"]),
            ("a = ('x';", &["line 1, column 9: expected"]),
            ("a = [('x'];", &["line 1, column 10: expected"]),
            ("a = 'x'", &["line 1, column 8: expected"]),
            ("a = 'x' 'y';", &["line 1, column 9: expected"]),
            ("a ::= 'x';", &["line 1, column 3: a rule is written"]),
            ("a = 'x'*;", &["line 1, column 8: a repetition is written"]),
            (
                "a = ? any ?, b c;\n b = 99999999999 * 'x';\nb = 'y';",
                &[
                    "line 1, column 5: `? any ?` is known to people only",
                    "line 1, column 14: rule `b c` is not defined",
                    "line 2, column 6: the repetition count is too large",
                    "line 3, column 1: rule `b` is defined twice",
                ],
            ),
            (
                "a = b - 'x';\nb = ['x', b, 'y'];",
                &["line 2, column 11: `b` calls itself"],
            ),
        ],
    );
}

#[test]
fn deep_and_large_grammars_are_read_or_refused() {
    let rule = |name: &str, body: &str| format!("{name} = {body};\n");
    check_size(lower, rule, ("(", ")"), "'a'", &[", 'b'", "| 'b'"]);
    check_size(lower, rule, ("[", "]"), "'a'", &[" / 'b'"]);
    check_size(lower, rule, ("{", "}"), "'a'", &[]);
    check_size(lower, rule, ("(/", "/)"), "'a'", &[]);
    check_size(lower, rule, ("(:", ":)"), "'a'", &[]);
    for text in ["(* \" *)", "\"'\"", "?\"?"] {
        let deep = format!("a = {text}, {}", "(".repeat(100_000));
        assert!(lower(&deep, &Limits::default()).is_err());
    }
}

#[test]
fn any_text_is_read_or_refused() {
    let fragments = [
        "a = ", "a = 'x' ", "'b'", ", ", "; b = ", "(/", "/)", "(:", ":)", "(* a *)", "? a ?", "3 * ", "; ",
    ];
    check_random(lower, ("a = ", ";"), &fragments);
}
