//! Assertions that the report calls exact are tested with valid, unusual spellings: each one is allowed, or
//! the report says that it is left out. If the report says so, there is such a spelling.
//!
//! Numbers are judged by slow integer arithmetic. Texts with escapes and white space are tested under the
//! options that allow all of them.

use std::sync::Arc;

use lexiform::Grammar;
use lexiform::schema::{Enforced, KeyOrder, Report, Whitespace};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform_syntax::regex::Escapes;
use lexiform_syntax::schema;

/// A vocabulary of all single bytes.
fn compiler() -> Compiler {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let bytes = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte]));
    let tokens: Vec<_> = std::iter::once(eos).chain(bytes).collect();
    Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")))
}

fn compile(schema: &str, options: &Options) -> (Grammar, Report) {
    let compiled = compiler().compile(Source::JsonSchema(schema), options);
    let (grammar, _) = compiled.unwrap_or_else(|error| panic!("{schema}: {error}"));
    let report = schema::report(schema, &options.schema, &options.limits).expect("it compiles");
    (grammar, report)
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    grammar
        .step_bytes(grammar.start(), text.as_bytes())
        .is_some_and(|state| grammar.is_accepting(state))
}

/// The number of decimal places that the arithmetic of this test has.
const PLACES: usize = 12;
const ONE: i128 = 10i128.pow(PLACES as u32);

/// A number in units of 10^-12.
fn value(spelling: &str) -> i128 {
    let (negative, rest) = match spelling.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, spelling),
    };
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().expect("digits");
    let exponent: i32 = exponent.parse().expect("an exponent");
    let places = exponent + PLACES as i32 - fraction.len() as i32;
    let magnitude = match u32::try_from(places) {
        Ok(places) => digits * 10i128.pow(places),
        Err(_) => {
            let divisor = 10i128.pow(places.unsigned_abs());
            assert_eq!(
                digits % divisor,
                0,
                "{spelling} has too many places for this test"
            );
            digits / divisor
        }
    };
    if negative { -magnitude } else { magnitude }
}

/// Numbers in every way that JSON has, and in many that nobody writes.
fn spellings() -> Vec<String> {
    let mantissas = [
        "0", "0.0", "1", "1.0", "10", "100", "12", "120", "0.5", "0.50", "0.1", "0.01", "1.5", "15", "15.0",
        "150", "0.15", "2.5", "25", "99.5", "7", "70", "0.7", "12.25", "1000",
    ];
    let exponents = [
        "", "e0", "E-0", "e+0", "e1", "E+1", "e-1", "E-01", "e2", "e+002", "e-2", "E3", "e-3", "e16", "E+17",
    ];
    let magnitudes = mantissas.iter().flat_map(|mantissa| {
        exponents
            .iter()
            .map(move |exponent| format!("{mantissa}{exponent}"))
    });
    magnitudes
        .flat_map(|magnitude| [format!("-{magnitude}"), magnitude])
        .collect()
}

/// A schema, what it says of a number, and the pointers under which spellings are left out.
type Claim = (&'static str, fn(&str, i128) -> bool, &'static [&'static str]);

fn is_plain(text: &str) -> bool {
    !text.contains(['.', 'e', 'E'])
}

const CLAIMS: &[Claim] = &[
    (r#"{"type": "number"}"#, |_, _| true, &[]),
    (r#"{"type": "integer"}"#, |_, v| v % ONE == 0, &["/type"]),
    (r#"{"type": "number", "minimum": 0}"#, |_, v| v >= 0, &[]),
    (r#"{"type": "number", "exclusiveMinimum": 0}"#, |_, v| v > 0, &[]),
    (r#"{"type": "number", "maximum": 0}"#, |_, v| v <= 0, &[]),
    (
        r#"{"type": "number", "exclusiveMaximum": 0.0}"#,
        |_, v| v < 0,
        &[],
    ),
    (
        r#"{"type": "number", "minimum": 0, "maximum": 0}"#,
        |_, v| v == 0,
        &[],
    ),
    (r#"{"type": "number", "not": {"minimum": 0}}"#, |_, v| v < 0, &[]),
    (
        r#"{"type": "number", "minimum": 1.5}"#,
        |_, v| v >= ONE * 3 / 2,
        &["/minimum"],
    ),
    (
        r#"{"type": "number", "exclusiveMinimum": -10}"#,
        |_, v| v > -10 * ONE,
        &["/exclusiveMinimum"],
    ),
    (
        r#"{"type": "number", "maximum": 15}"#,
        |_, v| v <= 15 * ONE,
        &["/maximum"],
    ),
    (
        r#"{"type": "number", "minimum": 0, "exclusiveMaximum": 1}"#,
        |_, v| (0..ONE).contains(&v),
        &["/exclusiveMaximum"],
    ),
    (
        r#"{"type": "number", "not": {"maximum": 1}}"#,
        |_, v| v > ONE,
        &["/not/maximum"],
    ),
    (
        r#"{"type": "integer", "minimum": 0}"#,
        |_, v| v >= 0 && v % ONE == 0,
        &["/type"],
    ),
    (
        r#"{"type": "integer", "maximum": 120}"#,
        |_, v| v <= 120 * ONE && v % ONE == 0,
        &["/type", "/maximum"],
    ),
    (
        r#"{"type": "integer", "minimum": -15, "maximum": 1500}"#,
        |_, v| (-15 * ONE..=1_500 * ONE).contains(&v) && v % ONE == 0,
        &["/type", "/minimum", "/maximum"],
    ),
    (
        r#"{"type": "number", "not": {"type": "integer"}}"#,
        |_, v| v % ONE != 0,
        &["/not/type"],
    ),
    (
        r#"{"type": "number", "multipleOf": 1}"#,
        |_, v| v % ONE == 0,
        &["/multipleOf"],
    ),
    (
        r#"{"type": "number", "multipleOf": 5}"#,
        |_, v| v % (5 * ONE) == 0,
        &["/multipleOf"],
    ),
    (
        r#"{"type": "number", "multipleOf": 0.25}"#,
        |_, v| v % (ONE / 4) == 0,
        &["/multipleOf"],
    ),
    (
        r#"{"type": "number", "not": {"multipleOf": 3}}"#,
        |_, v| v % (3 * ONE) != 0,
        &["/not/multipleOf"],
    ),
    (r#"{"const": 0}"#, |_, v| v == 0, &[]),
    (r#"{"const": 1}"#, |_, v| v == ONE, &["/const"]),
    (
        r#"{"enum": [0, -0.5, 1e17]}"#,
        |_, v| [0, -ONE / 2, ONE * 10i128.pow(17)].contains(&v),
        &["/enum"],
    ),
    (r#"{"type": "number", "not": {"const": 0}}"#, |_, v| v != 0, &[]),
    (
        r#"{"type": "number", "minimum": 0, "not": {"const": 0}}"#,
        |_, v| v > 0,
        &[],
    ),
    (
        r#"{"type": "number", "not": {"const": 1.5}}"#,
        |_, v| v != ONE * 3 / 2,
        &["/not/const"],
    ),
    (
        r#"{"type": "integer", "not": {"const": 0}}"#,
        |_, v| v != 0 && v % ONE == 0,
        &["/type"],
    ),
    (
        r#"{"type": "integer", "not": {"enum": [0, 120]}}"#,
        |_, v| v != 0 && v != 120 * ONE && v % ONE == 0,
        &["/type", "/not/enum"],
    ),
    (
        r#"{"anyOf": [{"type": "integer"}, {"minimum": 0}]}"#,
        |_, v| v >= 0 || v % ONE == 0,
        &["/anyOf/0/type"],
    ),
    (
        r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}"#,
        |t, _| is_plain(t),
        &[],
    ),
    (
        r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": -15, "maximum": 120}"#,
        |t, v| is_plain(t) && (-15 * ONE..=120 * ONE).contains(&v),
        &[],
    ),
    (
        r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "multipleOf": 5}"#,
        |t, v| is_plain(t) && v % (5 * ONE) == 0,
        &[],
    ),
    (
        r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "enum": [-7, 120]}"#,
        |t, v| is_plain(t) && [-7 * ONE, 120 * ONE].contains(&v),
        &[],
    ),
    (
        r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "not": {"type": "integer"}}"#,
        |t, _| !is_plain(t),
        &[],
    ),
];

#[test]
fn every_spelling_of_a_number_is_allowed_or_said_to_be_left_out() {
    let spellings = spellings();
    for (schema, is_valid, left_out) in CLAIMS {
        let (grammar, report) = compile(schema, &Options::default());
        let mut refused = 0;
        for spelling in &spellings {
            let valid = is_valid(spelling, value(spelling));
            let allowed = accepts(&grammar, spelling);
            assert!(valid || !allowed, "{schema} allows {spelling}");
            refused += usize::from(valid && !allowed);
            assert!(
                !left_out.is_empty() || valid == allowed,
                "{schema} refuses {spelling}"
            );
        }
        let noted = report
            .assertions
            .iter()
            .filter(|assertion| assertion.enforced != Enforced::Exact);
        let noted: Vec<&str> = noted.map(|assertion| assertion.pointer.as_str()).collect();
        assert_eq!(noted, *left_out, "{schema}\n{report}");
        assert_eq!(refused > 0, !left_out.is_empty(), "{schema}\n{report}");
        assert!(report.is_exact(), "spellings are not values: {schema}");
    }
}

#[test]
fn every_value_has_a_spelling() {
    for (schema, is_valid, _) in CLAIMS {
        let (grammar, _) = compile(schema, &Options::default());
        for plain in spellings().iter().filter(|text| !text.contains(['e', 'E'])) {
            assert_eq!(
                accepts(&grammar, plain),
                is_valid(plain, value(plain)),
                "{schema}: {plain}"
            );
        }
    }
}

/// Every escape, white space wherever the option has it, keys in any order.
fn loose() -> Options {
    let mut options = Options::default();
    options.schema.escapes = Escapes::Any;
    options.schema.whitespace = Whitespace::Pattern(r"[ \t\r\n]*".to_owned());
    options.schema.key_order = KeyOrder::Any;
    options
}

/// A schema, texts that are valid, and texts that are not.
type Texts = (&'static str, &'static [&'static str], &'static [&'static str]);

const STRINGS: &[Texts] = &[
    (
        r#"{"type": "string"}"#,
        &[
            r#""\u0061""#,
            r#""\/""#,
            r#""\ud83D\uDe00""#,
            r#""\u000A\n\u007f""#,
        ],
        &["1"],
    ),
    (
        r#"{"const": "a/b"}"#,
        &[r#""a\/b""#, r#""\u0061\u002fb""#, r#""a\u002F\u0062""#],
        &[r#""a\\/b""#],
    ),
    (
        r#"{"enum": ["é", "\n", 1]}"#,
        &[r#""\u00E9""#, r#""\u000a""#, r#""\n""#],
        &[r#""\u00E8""#],
    ),
    (
        r#"{"not": {"const": "a"}}"#,
        &[r#""\u0062""#, r#""aa""#],
        &[r#""\u0061""#],
    ),
    (
        r#"{"pattern": "^a.$"}"#,
        &[r#""\u0061\/""#, r#""a\ud83d\ude00""#, r#""a\u0022""#],
        &[r#""\u0062a""#, r#""a\n""#],
    ),
    (
        r#"{"not": {"pattern": "a"}}"#,
        &[r#""\u0062""#],
        &[r#""\u0061""#, "1"],
    ),
    (
        r#"{"minLength": 2}"#,
        &[r#""\u0061b""#],
        &[r#""\ud83d\ude00""#, r#""\u0061""#],
    ),
    (
        r#"{"maxLength": 1}"#,
        &[r#""\ud83d\ude00""#, r#""\u0061""#],
        &[r#""\u0061a""#],
    ),
    (
        r#"{"format": "date"}"#,
        &[r#""\u0032024-02-2\u0039""#],
        &[r#""2023-02-2\u0039""#],
    ),
    (
        r#"{"format": "ipv4"}"#,
        &[r#""127\u002e0.0.1""#],
        &[r#""127\u002f0.0.1""#],
    ),
    (
        r#"{"format": "hostname"}"#,
        &[r#""\u0061.b""#],
        &[r#""\u005f..""#],
    ),
    (
        r#"{"format": "uuid"}"#,
        &[r#""2eb8aa08\u002daa98-11ea-b4aa-73b441d16380""#],
        &[r#""\u0032""#],
    ),
];

const OBJECTS: &[Texts] = &[
    (
        r#"{"properties": {"a": {"type": "null"}, "b": {"const": "x"}}}"#,
        &[
            "{\t\"\\u0061\":\n null,\r\n\"b\":\"\\u0078\" }",
            r#"{"b":"x","\u0061":null}"#,
            "{}",
        ],
        &[r#"{"\u0061": 1}"#, r#"{"a": null, "\u0061": null}"#],
    ),
    (
        r#"{"type": "object", "required": ["a"]}"#,
        &[r#"{"\u0061": 1}"#, r#"{"b":  {}, "\u0061":[ 1 ]}"#],
        &["{ }"],
    ),
    (
        r#"{"not": {"required": ["a"]}}"#,
        &[r#"{"\u0062": 1}"#],
        &[r#"{"\u0061": 1}"#],
    ),
    (
        r#"{"properties": {"a/b": {}}, "additionalProperties": false}"#,
        &[r#"{"\u0061\/b": 1}"#, r#"{"a\u002Fb": 1}"#],
        &[r#"{"\u0062": 1}"#],
    ),
    (
        r#"{"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": {"type": "string"}}"#,
        &[r#"{"\u0061b": null, "\u0062": "a"}"#],
        &[r#"{"\u0061": "a"}"#, r#"{"\u0062": null}"#],
    ),
    (
        r#"{"propertyNames": {"maxLength": 1}}"#,
        &[r#"{"\ud83d\ude00": 1}"#],
        &[r#"{"\u0061a": 1}"#],
    ),
    (
        r#"{"propertyNames": {"enum": ["a", "b"]}}"#,
        &[r#"{"\u0062": 1, "a": 2}"#],
        &[r#"{"\u0063": 1}"#],
    ),
    (
        r#"{"minProperties": 2}"#,
        &[r#"{"\u0061": 1,  "\u0062": 2}"#],
        &[r#"{"\u0061": 1}"#],
    ),
    (
        r#"{"maxProperties": 1}"#,
        &[r#"{ "\u0061": 1 }"#],
        &[r#"{"\u0061": 1, "b": 2}"#],
    ),
    (
        r#"{"dependentRequired": {"a": ["b"]}}"#,
        &[r#"{"\u0061": 1, "\u0062": 2}"#, r#"{"c": 1}"#],
        &[r#"{"\u0061": 1, "c": 2}"#],
    ),
    (
        r#"{"dependentSchemas": {"a": {"properties": {"b": false}}}}"#,
        &[r#"{"\u0061": 1, "c": 2}"#],
        &[r#"{"\u0061": 1, "\u0062": 2}"#],
    ),
    (
        r#"{"anyOf": [{"properties": {"a": {"const": 0}}, "required": ["a"]}], "unevaluatedProperties": {"type": "null"}}"#,
        &[r#"{"\u0061": 0, "b": null}"#],
        &[r#"{"\u0061": 0, "b": 0}"#],
    ),
    (
        r#"{"if": {"properties": {"a": {"const": "x"}}, "required": ["a"]}, "then": {"required": ["b"]}}"#,
        &[r#"{"\u0061": "\u0078", "\u0062": 2}"#, r#"{"\u0061": "\u0079"}"#],
        &[r#"{"\u0061": "\u0078"}"#],
    ),
    (
        r#"{"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}"#,
        &[r#"{"\u0061":  1}"#],
        &[r#"{"\u0061": 1, "\u0062": 1}"#],
    ),
    (
        r#"{"const": {"a": [true, "b"]}}"#,
        &["{ \"\\u0061\":\t[ true,\n\"\\u0062\" ] }"],
        &[r#"{"a": [true]}"#],
    ),
];

const ARRAYS: &[Texts] = &[
    (
        r#"{"type": "array", "minItems": 1, "maxItems": 2}"#,
        &["[ 1 ]", "[1,\n\t2]"],
        &["[ ]", "[1, 2, 3]"],
    ),
    (
        r#"{"prefixItems": [{"const": "a"}], "items": {"type": "null"}}"#,
        &[r#"["\u0061",  null ]"#],
        &[r#"["\u0062"]"#],
    ),
    (
        r#"{"contains": {"const": "a"}}"#,
        &[r#"[1,  "\u0061" ]"#],
        &["[ ]", r#"["\u0062"]"#],
    ),
    (
        r#"{"contains": {"const": "a"}, "maxContains": 1}"#,
        &[r#"["b",  "\u0061" ]"#, r#"["\u0062",  "\u0061" ]"#],
        &[r#"["a", "\u0061"]"#],
    ),
    (
        r#"{"not": {"contains": {"const": "a"}}}"#,
        &[r#"[ "\u0062" ]"#],
        &[r#"["\u0061"]"#],
    ),
    (
        r#"{"contains": {"const": "a"}, "unevaluatedItems": {"type": "null"}}"#,
        &[r#"[ "\u0061", null]"#],
        &["[0]"],
    ),
    (
        r#"{"items": {"type": "boolean"}, "uniqueItems": true}"#,
        &["[ true,\n false ]"],
        &["[true, true]"],
    ),
    (
        r#"{"items": {"enum": ["a", "b"]}, "uniqueItems": true}"#,
        &[r#"["\u0061",  "b" ]"#, r#"["\u0062"]"#],
        &[r#"["\u0061", "a"]"#],
    ),
    (
        r#"{"items": {"type": "string"}, "uniqueItems": true}"#,
        &[r#"["\u0061",  "b" ]"#, r#"["\u0062"]"#, r#"["\/"]"#],
        &[r#"["\u0061", "a"]"#],
    ),
    (
        r#"{"items": {"type": "array", "items": {"type": "string"}}, "uniqueItems": true}"#,
        &[r#"[["\u0061" ],  ["b"] ]"#, r#"[["\u0062"]]"#],
        &[r#"[["\u0061"], ["a"]]"#],
    ),
];

#[test]
fn strings_are_told_apart_by_one_spelling_and_the_report_says_so() {
    let schema = r#"{"items": {"type": "string"}, "uniqueItems": true}"#;
    for (escapes, spelled) in [
        (Escapes::Minimal, true),
        (Escapes::Any, true),
        (Escapes::Canonical, false),
    ] {
        let mut options = loose();
        options.schema.escapes = escapes;
        let (grammar, report) = compile(schema, &options);
        assert_eq!(
            matches!(report.assertions[1].enforced, Enforced::Spelled(_)),
            spelled,
            "{report}"
        );
        assert_eq!(report.assertions[1].keyword, "uniqueItems");
        for (text, allowed) in [
            (r#"["\u001f", "a"]"#, true),
            (r#"["\u001F"]"#, false),
            (r#"["\u0061"]"#, false),
        ] {
            assert_eq!(accepts(&grammar, text), allowed, "{text} with {escapes:?}");
        }
    }
    let counted = r#"{"items": {"enum": ["a", "b"]}, "uniqueItems": true}"#;
    let (_, report) = compile(counted, &loose());
    assert!(
        report
            .assertions
            .iter()
            .all(|assertion| assertion.enforced == Enforced::Exact),
        "{report}"
    );
}

#[test]
fn every_spelling_of_texts_is_allowed_or_said_to_be_left_out() {
    for (schema, valid, invalid) in [STRINGS, OBJECTS, ARRAYS].concat() {
        let (grammar, report) = compile(schema, &loose());
        let exact = report
            .assertions
            .iter()
            .all(|assertion| assertion.enforced == Enforced::Exact);
        for text in valid {
            assert!(
                !exact || accepts(&grammar, text),
                "{schema} refuses {text}\n{report}"
            );
        }
        for text in invalid {
            if accepts(&grammar, text) {
                eprintln!("{schema} allows {text}");
            }
        }
    }
}

#[test]
fn no_key_comes_twice_by_another_spelling() {
    for order in [KeyOrder::Any, KeyOrder::Schema] {
        let mut options = Options::default();
        options.schema.key_order = order;
        for schema in [
            "true",
            r#"{"minProperties": 2}"#,
            r#"{"properties": {"a": {"type": "integer"}}, "minProperties": 2}"#,
            r#"{"patternProperties": {"^.$": {"type": "integer"}}, "minProperties": 2}"#,
        ] {
            let (grammar, _) = compile(schema, &options);
            assert!(
                accepts(&grammar, r#"{"\u001f": 1, "\u001e": 2}"#),
                "{schema}, {order:?}"
            );
            assert!(
                !accepts(&grammar, r#"{"\u001f": 1, "\u001F": 2}"#),
                "{schema}, {order:?}"
            );
        }
        let (grammar, _) = compile(r#"{"properties": {"\u001f": {"type": "integer"}}}"#, &options);
        for text in [r#"{"\u001f": 1, "\u001F": 2}"#, r#"{"\u001F": "a"}"#] {
            assert!(!accepts(&grammar, text), "{text}, {order:?}");
        }
        assert!(accepts(&grammar, r#"{"\u001F": 1}"#), "{order:?}");
    }
}
