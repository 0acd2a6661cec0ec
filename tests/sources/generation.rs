//! The options for the texts that models write: objects that list their keys are closed, and numbers are
//! spelled as doubles are.
//!
//! A slow, separate judge decides which keys a value may have: it walks through the schema as written, along
//! the branches that hold, and collects the listed keys. The `jsonschema` crate decides validity.

mod judge;

use crate::random;
use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::ProblemKind;
use lexiform::schema::{AdditionalProperties, Enforced, KeyOrder, Numbers, Refuse};
use lexiform::{Options, Source};
use lexiform_syntax::schema;
use random::{Dice, accepts, cases, compiler};
use serde_json::{Value, json};

fn options() -> Options {
    let mut options = Options {
        schema: schema::Options::for_generation(),
        ..Options::default()
    };
    options.schema.key_order = KeyOrder::Any;
    options
}

fn compile(schema: &Value) -> Result<Grammar, CompileError> {
    let compiled = compiler().compile(Source::JsonSchema(&schema.to_string()), &options());
    compiled.map(|(grammar, _)| grammar)
}

fn accepts_text(grammar: &Grammar, text: &str) -> bool {
    let end = grammar.step_bytes(grammar.start(), text.as_bytes());
    end.is_some_and(|state| grammar.is_accepting(state))
}

/// Returns a text of random tokens from the masks, or `None` if the walk did not end.
fn walk(grammar: &Grammar, dice: &mut Dice) -> Option<String> {
    let mut state = grammar.start();
    let mut text = Vec::new();
    for step in 0..300 {
        let allowed: Vec<u32> = grammar.mask(state).iter().collect();
        assert!(
            !allowed.is_empty(),
            "a dead end behind {:?}",
            String::from_utf8_lossy(&text)
        );
        let closing = allowed
            .iter()
            .filter(|&&token| token == 0 || b"\"]}".contains(&((token - 1) as u8)));
        let closing: Vec<u32> = closing.copied().collect();
        let token = match !closing.is_empty() && dice.roll(60) < 10 + step {
            true => *dice.pick(&closing),
            false => *dice.pick(&allowed),
        };
        if token == 0 {
            return Some(String::from_utf8(text).expect("the masks lead to UTF-8"));
        }
        text.push((token - 1) as u8);
        state = grammar
            .step(state, token)
            .expect("a token of the mask is allowed");
    }
    None
}

/// What is written is valid and has no key that nothing lists, and each such value can be written.
#[test]
fn closed_languages_are_the_valid_values_whose_keys_are_listed() {
    let mut dice = Dice(0xc105_ed0b_1ec7_5001);
    let (mut compiled, mut walked, mut written, mut cut) = (0, 0, 0, 0);
    for _ in 0..cases(400) {
        let schema = judge::schema(&mut dice, 2);
        let Ok(grammar) = compile(&schema) else { continue };
        compiled += 1;
        let valid = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let belongs = |value: &Value| valid.is_valid(value) && judge::is_listed(&schema, value);
        for _ in 0..8 {
            let Some(text) = walk(&grammar, &mut dice) else {
                continue;
            };
            let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(belongs(&value), "{schema} leads to {text}");
            walked += 1;
        }
        for _ in 0..40 {
            let value = judge::instance(&mut dice, 2);
            let expected = belongs(&value);
            assert_eq!(accepts(&grammar, &value), expected, "{schema} and {value}");
            written += usize::from(expected);
            cut += usize::from(!expected && valid.is_valid(&value));
        }
    }
    assert!(
        compiled > 200 && walked > 1_000 && written > 1_000 && cut > 1_000,
        "{compiled} compiled, {walked} walked, {written} written, {cut} cut"
    );
}

/// A schema, values of its closed language, and valid values outside it.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const OBJECTS: &[Case] = &[
    (
        r#"{"properties": {"a": {}}}"#,
        &["{}", r#"{"a":{"b":1}}"#, "1"],
        &[r#"{"b":1}"#],
    ),
    (r#"{"type": "object"}"#, &["{}", r#"{"b":1}"#], &[]),
    (
        r#"{"type": "object", "properties": {}}"#,
        &["{}"],
        &[r#"{"b":1}"#],
    ),
    (
        r#"{"properties": {"a": {}}, "additionalProperties": true}"#,
        &[r#"{"a":1,"b":1}"#],
        &[],
    ),
    (
        r#"{"properties": {"a": {}}, "additionalProperties": {"type": "null"}}"#,
        &[r#"{"b":null}"#],
        &[],
    ),
    (
        r#"{"properties": {"a": {}}, "unevaluatedProperties": {}}"#,
        &[r#"{"a":1,"b":1}"#],
        &[],
    ),
    (
        r#"{"allOf": [{"properties": {"a": {}}, "unevaluatedProperties": true}, {"properties": {"b": {}}}]}"#,
        &[r#"{"a":1,"c":1}"#],
        &[],
    ),
    (
        r#"{"properties": {"a": {}}, "propertyNames": {"maxLength": 2}}"#,
        &[r#"{"bb":1}"#],
        &[],
    ),
    (
        r#"{"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}"#,
        &["{}", r#"{"a":1,"b":1}"#],
        &[r#"{"a":1,"c":1}"#],
    ),
    (
        r##"{"$ref": "#/$defs/x", "properties": {"b": {}}, "$defs": {"x": {"properties": {"a": {}}}}}"##,
        &[r#"{"a":1,"b":1}"#],
        &[r#"{"c":1}"#],
    ),
    (
        r#"{"properties": {"a": {}}, "patternProperties": {"^x-": {"type": "integer"}}}"#,
        &[r#"{"a":1,"x-b":2}"#],
        &[r#"{"b":1}"#],
    ),
    (
        r#"{"patternProperties": {"^x-": {}}}"#,
        &[r#"{"x-a":1,"b":2}"#],
        &[],
    ),
    (
        r#"{"properties": {"a": {}}, "required": ["id"]}"#,
        &[r#"{"id":{"b":1}}"#, r#"{"a":1,"id":2}"#],
        &[r#"{"id":1,"b":1}"#],
    ),
    (
        r#"{"properties": {"a": {}}, "dependentRequired": {"a": ["b"]}}"#,
        &["{}", r#"{"a":1,"b":2}"#],
        &[r#"{"b":2}"#],
    ),
    (
        r#"{"properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {}}}}}"#,
        &["{}", r#"{"a":1,"b":2}"#],
        &[r#"{"b":2}"#],
    ),
    (
        r#"{"anyOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {}}, "required": ["b"]}, {"type": "null"}]}"#,
        &["{}", r#"{"a":1}"#, r#"{"b":1}"#, "null"],
        &[r#"{"c":1}"#, r#"{"a":"x","b":1}"#, r#"{"a":1,"b":1}"#],
    ),
    (
        r#"{"anyOf": [true, {"properties": {"b": {}}}], "properties": {"a": {}}}"#,
        &[r#"{"a":1,"b":1}"#],
        &[r#"{"c":1}"#],
    ),
    (
        r#"{"oneOf": [{"properties": {"k": {"const": 1}, "a": {}}, "required": ["k"]},
            {"properties": {"k": {"const": 2}, "b": {}}, "required": ["k"]}]}"#,
        &[r#"{"k":1,"a":0}"#, r#"{"k":2,"b":0}"#],
        &[r#"{"k":1,"b":0}"#],
    ),
    // Closed, neither shares a value with the other; as they are, both allow {"a":1,"b":2}, which is not one
    // of them then.
    (
        r#"{"oneOf": [{"properties": {"a": {}, "b": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}"#,
        &[r#"{"a":1}"#, r#"{"b":1}"#],
        &[],
    ),
    (
        r#"{"properties": {"k": {}}, "if": {"properties": {"k": {"const": 1}}}, "then": {"properties": {"a": {}}},
            "else": {"properties": {"b": {}}}}"#,
        &[r#"{"k":1,"a":0}"#, r#"{"k":2,"b":0}"#],
        &[r#"{"k":2,"a":0}"#],
    ),
    // Closed, these would have no value.
    (
        r#"{"properties": {"a": {}}, "minProperties": 2}"#,
        &[r#"{"a":1,"b":1}"#, r#"{"b":1,"c":1}"#],
        &[],
    ),
    (
        r#"{"properties": {"a": {}, "b": {}}, "minProperties": 1}"#,
        &[r#"{"b":1}"#],
        &[r#"{"c":1}"#],
    ),
    (
        r#"{"properties": {"a": false, "b": {}}, "minProperties": 2}"#,
        &[r#"{"b":1,"c":1}"#],
        &[],
    ),
    (
        r##"{"type": "object", "properties": {"a": {"$ref": "#"}}, "minProperties": 1}"##,
        &[r#"{"b":1}"#, r#"{"a":{"b":1}}"#],
        &[],
    ),
    (
        r#"{"properties": {"a": {}}, "not": {"additionalProperties": {"type": "string"}}}"#,
        &[r#"{"a":1}"#],
        &[r#"{"a":1,"b":1}"#],
    ),
    (r#"{"const": {"a": {"b": 1}}}"#, &[r#"{"a":{"b":1}}"#], &[]),
    (
        r#"{"type": "array", "items": {"properties": {"a": {}}}}"#,
        &[r#"[{"a":1},{}]"#],
        &[r#"[{"b":1}]"#],
    ),
];

#[test]
fn objects_are_closed_where_all_that_is_said_is_which_keys_there_are() {
    for (text, within, without) in OBJECTS {
        let schema: Value = serde_json::from_str(text).expect("a schema");
        let grammar = compile(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        let valid = jsonschema::draft202012::new(&schema).expect("a valid schema");
        let mut open = options();
        open.schema.additional_properties = AdditionalProperties::Specified;
        let (open, _) = compiler()
            .compile(Source::JsonSchema(text), &open)
            .expect("it compiles");
        for (values, allowed) in [(within, true), (without, false)] {
            for value in *values {
                let read: Value = serde_json::from_str(value).expect("a value");
                assert!(valid.is_valid(&read), "{schema}: {value} is a bad case");
                assert_eq!(accepts_text(&grammar, value), allowed, "{schema}: {value}");
                assert!(
                    accepts_text(&open, value),
                    "{schema}: {value} is allowed where objects stay open"
                );
            }
        }
    }
}

/// Whatever has a value keeps one, and what is closed is reported at its `properties`.
#[test]
fn closing_is_reported_and_is_no_reason_to_refuse() {
    let text = r#"{"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}},
        "c": {"properties": {"d": {}}, "additionalProperties": false}, "e": {"properties": {"f": {}}, "minProperties": 2}}}"#;
    let mut options = options();
    options.schema.refuse = Refuse::Inexact;
    let (_, found) = compiler()
        .compile(Source::JsonSchema(text), &options)
        .expect("nothing is narrower");
    let closed: Vec<String> = found.findings.iter().map(|finding| finding.to_string()).collect();
    assert!(
        found
            .findings
            .iter()
            .all(|finding| finding.kind == ProblemKind::Closed),
        "{closed:?}"
    );
    let report = schema::report(text, &options.schema, &options.limits).expect("it compiles");
    let told = report.assertions.iter();
    let told = told.filter(|told| matches!(told.enforced, Enforced::Closed(_)));
    let told: Vec<&str> = told.map(|told| told.pointer.as_str()).collect();
    assert_eq!(told, ["/properties", "/properties/a/properties"]);
    assert!(report.is_exact(), "{report}");
    options.schema.additional_properties = AdditionalProperties::Specified;
    let (_, found) = compiler()
        .compile(Source::JsonSchema(text), &options)
        .expect("it compiles");
    assert!(found.findings.is_empty());
}

#[test]
fn schemas_keep_a_value_when_they_are_closed() {
    let (mut dice, compiler) = (Dice(0x5a71_5f1a_b1e0_0001), compiler());
    let mut kept = 0;
    for _ in 0..cases(1_500) {
        let text = random::whole_schema(&mut dice, 2).to_string();
        let open = compiler
            .compile(Source::JsonSchema(&text), &Options::default())
            .is_ok();
        let closed = compiler.compile(Source::JsonSchema(&text), &options());
        assert!(
            !open || closed.is_ok(),
            "{text}: {}",
            closed.expect_err("it does not compile")
        );
        kept += usize::from(open);
    }
    assert!(kept > 500, "{kept} compiled");
}

/// Schemas of numbers, spellings that are written, and spellings of valid values that are not.
const NUMBERS: &[Case] = &[
    (
        r#"{"type": "integer"}"#,
        &["0", "34", "-7", "-9223372036854775808", "18446744073709551615"],
        &["34.0", "34e0", "-0", "3e2", "0.0", "123456789012345678901"],
    ),
    (
        r#"{"type": "integer", "minimum": 3, "maximum": 1e30}"#,
        &["3", "1000000000000000000000000000000"],
        &["3.0", "1e30"],
    ),
    (
        r#"{"type": "integer", "minimum": 1e25}"#,
        &["10000000000000000000000000", "12345678901234567890123456"],
        &["1", "1e25"],
    ),
    (
        r#"{"type": "integer", "multipleOf": 7}"#,
        &["0", "-14"],
        &["14.0", "-0", "1.4e1"],
    ),
    (
        r#"{"multipleOf": 0.25}"#,
        &["0.5", "-0.25", "3", "3.25"],
        &["3.250", "0.500"],
    ),
    (
        r#"{"type": "integer", "not": {"const": 5}}"#,
        &["4", "55"],
        &["4.0"],
    ),
    (
        r#"{"type": "number"}"#,
        &[
            "0",
            "-0.0",
            "34.0",
            "34e0",
            "1e-05",
            "5e-324",
            "1.7976931348623157e308",
            "0.0000012345678901234567",
            "12345678901234567",
            "1234567890.1234567",
        ],
        &[
            "123456789012345678",
            "0.123456789012345678",
            "1.234567890123456789e5",
            "1e0007",
            "0.00000000000001",
        ],
    ),
    (
        r#"{"minimum": 0, "type": "number"}"#,
        &["0", "0.1", "1e-300"],
        &["0.100000000000000000"],
    ),
    (
        r#"{"const": 1e400}"#,
        &["1e400", "1E+400"],
        &["1e0000400", "1.0e400"],
    ),
    (r#"{"const": 34.0}"#, &["34"], &["34.0", "3.4e1"]),
    (
        r#"{"const": 12345678901234567890.5}"#,
        &["12345678901234567890.5"],
        &["12345678901234567890.50"],
    ),
    (
        r#"{"enum": [0.5, 100, -0.001]}"#,
        &["0.5", "100", "-0.001"],
        &["0.50", "1e2"],
    ),
    (
        r#"{"type": "number", "exclusiveMinimum": 0.12345678901234567891, "exclusiveMaximum": 0.12345678901234567892}"#,
        &["0.123456789012345678915"],
        &[],
    ),
    (
        r#"{"type": "number", "minimum": 1e20, "not": {"type": "integer"}}"#,
        &["100000000000000000000.5"],
        &[],
    ),
    (r#"{"type": "number", "minimum": 1e400}"#, &[], &[]),
    (
        r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}"#,
        &["7"],
        &["-0"],
    ),
];

#[test]
fn numbers_are_spelled_as_doubles_are() {
    for (text, written, left_out) in NUMBERS {
        let grammar = compile(&serde_json::from_str(text).expect("a schema"));
        let grammar = grammar.unwrap_or_else(|error| panic!("{text}: {error}"));
        for (spellings, allowed) in [(written, true), (left_out, false)] {
            for spelling in *spellings {
                assert_eq!(accepts_text(&grammar, spelling), allowed, "{text}: {spelling}");
            }
        }
        let mut any = options();
        any.schema.numbers = Numbers::Any;
        let (any, _) = compiler()
            .compile(Source::JsonSchema(text), &any)
            .expect("it compiles");
        for spelling in *written {
            assert!(
                accepts_text(&any, spelling),
                "{text}: {spelling}, in any spelling"
            );
        }
    }
}

/// Bounds leave numbers between them, whatever they are, and every double that is valid can be written.
#[test]
fn bounds_leave_all_doubles_between_them() {
    let mut dice = Dice(0xd0b1_e5d0_0b1e_5001);
    let digits = |dice: &mut Dice| -> String {
        let count = 1 + dice.roll(30);
        let digits: String = (0..count)
            .map(|_| char::from(b'0' + dice.roll(10) as u8))
            .collect();
        format!("1.{digits}e{}", dice.roll(700) as i64 - 350)
    };
    for _ in 0..cases(60) {
        let (lower, upper) = (digits(&mut dice), digits(&mut dice));
        for text in [
            format!(r#"{{"type": "number", "exclusiveMinimum": {lower}}}"#),
            format!(r#"{{"type": "number", "exclusiveMaximum": -{upper}, "not": {{"type": "integer"}}}}"#),
            format!(
                r#"{{"type": "number", "exclusiveMinimum": {lower}, "exclusiveMaximum": {lower}1, "not": {{"const": 5}}}}"#
            ),
        ] {
            let bound = lower.parse::<f64>().expect("a number");
            let open = compiler().compile(Source::JsonSchema(&text), &Options::default());
            let closed = compiler().compile(Source::JsonSchema(&text), &options());
            assert_eq!(open.is_ok(), closed.is_ok(), "{text}");
            let (Ok((grammar, _)), true) = (closed, text.contains("Minimum") && !text.contains("Maximum"))
            else {
                continue;
            };
            for factor in [1.5, 2.0, 1e10] {
                let double = bound * factor;
                let spellings = [format!("{double:e}"), format!("{double}")];
                let written = spellings.iter().any(|spelling| accepts_text(&grammar, spelling));
                assert!(
                    written || !double.is_finite() || double == 0.0,
                    "{text}: {double:e}"
                );
            }
        }
    }
}

/// White space ends: a line break, and eight columns for each open bracket.
#[test]
fn white_space_grows_with_the_depth() {
    let schema =
        r#"{"properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"items": {}}}}"#;
    let grammar = compile(&serde_json::from_str(schema).expect("a schema")).expect("it compiles");
    let line = |columns: usize| format!("\n{}", " ".repeat(columns));
    let object = |outer: usize, inner: usize| {
        let (outer, inner) = (line(outer), line(inner));
        format!("{{{outer}\"a\": [{inner}1,{inner}2{inner}]{outer}}}")
    };
    for (outer, inner, allowed) in [
        (2, 4, true),
        (0, 0, true),
        (8, 16, true),
        (9, 16, false),
        (8, 17, false),
    ] {
        assert_eq!(
            accepts_text(&grammar, &object(outer, inner)),
            allowed,
            "{outer} and {inner}"
        );
    }
    for text in [
        r#"{"a":[1,2]}"#,
        r#"{"a": [1, 2]}"#,
        "{ \"a\": [ 1 ] }",
        "{\n\t\"a\": []\n}",
    ] {
        assert!(accepts_text(&grammar, text), "{text}");
    }
    for text in [
        "{\n\n\"a\":[]}",
        "{\"a\":  []}",
        "{  \"a\": []}",
        "{\"a\" :[]}",
        " {}",
        "{} ",
    ] {
        assert!(!accepts_text(&grammar, text), "{text:?}");
    }
    // Values of any kind nest without end.
    let inside = format!("[{}", line(64)).repeat(9);
    let deep = format!("{{\"b\":[[{inside}1{}]]}}", "]".repeat(9));
    assert!(accepts_text(&grammar, &deep));
}

#[test]
fn reports_say_how_numbers_and_white_space_are_spelled() {
    let text = r#"{"properties": {"a": {"type": "integer"}, "b": {"type": "number"}, "c": {"const": 3}, "d": {"type": "string"}}}"#;
    let report = schema::report(text, &options().schema, &Options::default().limits).expect("it compiles");
    let spelled = report
        .assertions
        .iter()
        .filter(|told| matches!(told.enforced, Enforced::Spelled(_)));
    let spelled: Vec<&str> = spelled.map(|told| told.pointer.as_str()).collect();
    assert_eq!(
        spelled,
        [
            "/properties/a/type",
            "/properties/b/type",
            "/properties/c/const",
            ""
        ]
    );
    let scalar = schema::report(
        r#"{"type": "string"}"#,
        &options().schema,
        &Options::default().limits,
    );
    assert!(
        scalar
            .expect("it compiles")
            .assertions
            .iter()
            .all(|told| told.enforced == Enforced::Exact)
    );
    let default = json!({"type": "number"}).to_string();
    let report = schema::report(&default, &schema::Options::default(), &Options::default().limits)
        .expect("it compiles");
    assert_eq!(report.assertions[0].enforced, Enforced::Exact);
}
