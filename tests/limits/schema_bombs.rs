//! Schemas that are designed to be expensive. Each ends in a grammar or in an error with a JSON pointer; work
//! is counted, so nothing here uses a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::{Place, ProblemKind};
use lexiform::limits::{Cancel, Limits};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use serde_json::{Map, Value, json};

fn compile(schema: &Value) -> Result<Grammar, CompileError> {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let bytes = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte]));
    let tokens: Vec<_> = std::iter::once(eos).chain(bytes).collect();
    let compiler = Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")));
    let compiled = compiler.compile(Source::JsonSchema(&schema.to_string()), &Options::default());
    compiled.map(|(grammar, _)| grammar)
}

/// Reads in pieces, as who reads long texts does: beyond its memory a grammar is replaced.
fn accepts(grammar: &Grammar, text: &str) -> bool {
    let (mut grammar, mut state) = (grammar.clone(), grammar.start());
    for piece in text.as_bytes().chunks(1 << 10) {
        let Some(next) = grammar.step_bytes(state, piece) else {
            return false;
        };
        state = next;
        grammar.compact(std::slice::from_mut(&mut state));
    }
    grammar.is_accepting(state)
}

/// Every problem is a limit and has a pointer.
fn assert_limited(error: &CompileError) {
    for problem in &error.problems {
        assert_eq!(problem.kind, ProblemKind::Limit, "{problem}");
        assert!(matches!(problem.place, Place::Pointer(_)), "{problem}");
    }
}

/// An object with `count` keys.
fn object(count: usize, entry: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..count).map(entry).collect::<Map<String, Value>>())
}

#[test]
fn an_enum_of_a_megabyte() {
    let values: Vec<String> = (0..30_000)
        .map(|at| format!("value number {at} of many"))
        .collect();
    let grammar = compile(&json!({ "enum": values })).expect("it is large, not hard");
    assert!(accepts(&grammar, "\"value number 29999 of many\""));
    assert!(!accepts(&grammar, "\"value number 30000 of many\""));
}

#[test]
fn one_of_whose_branches_share_all_they_have_sixteen_deep() {
    let mut definitions = object(16, |at| {
        let inner = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let narrower = json!({"allOf": [inner, {"required": [format!("k{at}")]}]});
        (format!("d{at}"), json!({"oneOf": [inner, narrower]}))
    });
    definitions["d16"] = json!({"type": "object"});
    let grammar =
        compile(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).expect("keys that must not be");
    assert!(accepts(&grammar, "{\"x\": 1}"));
    assert!(!accepts(&grammar, "{\"k3\": 1}"));
}

#[test]
fn counters_inside_counters() {
    let error = compile(&json!({"pattern": "^(?:(?:a|b){0,300}c){0,300}$"})).expect_err("90,000 places");
    assert_limited(&error);
    let many = object(60, |at| {
        (
            format!("p{at}"),
            json!({"pattern": format!("^(?:\\S+\\s+){{0,{}}}\\S+$", 150 + at)}),
        )
    });
    let error = compile(&json!({ "properties": many })).expect_err("too much together");
    assert_limited(&error);
}

#[test]
fn a_denial_of_a_denial_four_hundred_deep() {
    let deep = (0..400).fold(json!({"type": "integer"}), |inner, _| json!({ "not": inner }));
    let grammar = compile(&deep).expect("each undoes the one before");
    assert!(accepts(&grammar, "1"));
    assert!(!accepts(&grammar, "\"a\""));
}

/// Patterns for keys are told apart two by two, and each of them makes a class of keys, for every conjunction
/// of a goal anew: 200 patterns beside 24 conditions took half a minute within the fuel.
#[test]
fn patterns_for_keys_beside_many_conjunctions() {
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = looks.clone();
    let limits = Limits {
        cancel: Cancel::when(move || counted.fetch_add(1, Ordering::Relaxed) > 1_000_000),
        ..Limits::default()
    };
    let condition = |at: usize| {
        json!({"if": {"properties": {format!("k{at}"): {"const": 1}}, "required": [format!("k{at}")]},
               "then": {"required": [format!("r{at}")]}, "else": {"required": [format!("s{at}")]}})
    };
    let patterns = object(200, |at| {
        (format!("^{at}x(a|b)*a(a|b){{9}}$"), json!({"type": "integer"}))
    });
    let mut all: Vec<Value> = (0..24).map(condition).collect();
    all.push(json!({ "patternProperties": patterns }));
    let schema = json!({ "allOf": all }).to_string();
    let error = lexiform_syntax::schema::lower(&schema, &Options::default().schema, &limits);
    let kinds: Vec<ProblemKind> = error
        .err()
        .map(|error| error.problems.iter().map(|problem| problem.kind).collect())
        .unwrap_or_default();
    assert!(
        !kinds.contains(&ProblemKind::Cancelled),
        "it looked {looks:?} times"
    );
}

/// Guards against a branch that is given up where it could be narrowed: 6^8 conjunctions, of which some are
/// kept.
#[test]
fn choices_that_multiply_are_narrowed_and_say_so() {
    let choice = |at: usize| {
        let ways: Vec<Value> = (0..6)
            .map(|way| json!({"required": [format!("a{at}{way}")]}))
            .collect();
        json!({ "anyOf": ways })
    };
    let schema = json!({"type": "object", "allOf": (0..8).map(choice).collect::<Vec<_>>()});
    let mut options = Options::default();
    let report = lexiform::schema::report(&schema.to_string(), &options.schema, &options.limits);
    assert!(!report.expect("it compiles").is_exact());
    let (_, found) = lexiform_syntax::schema::lower(&schema.to_string(), &options.schema, &options.limits)
        .expect("it compiles");
    // Nothing is denied here, so nothing is said of denials.
    let told: Vec<&str> = found
        .findings
        .iter()
        .map(|finding| finding.message.as_str())
        .collect();
    assert!(
        told.iter()
            .any(|message| message.contains("only the first 2600 are kept")),
        "{told:?}"
    );
    assert!(
        !told.iter().any(|message| message.contains("breaks it")),
        "{told:?}"
    );
    let grammar = compile(&schema).expect("some of the ways");
    assert!(!accepts(&grammar, "{}"));
    let some: Vec<String> = (0..8).map(|at| format!("\"a{at}0\": 1")).collect();
    assert!(accepts(&grammar, &format!("{{{}}}", some.join(", "))));
    options.schema.refuse = lexiform::schema::Refuse::Inexact;
    let error = lexiform_syntax::schema::lower(&schema.to_string(), &options.schema, &options.limits);
    assert_eq!(error.expect_err("exact").problems[0].kind, ProblemKind::Narrowed);
}

/// Each of them is a choice, and what waits for it holds all choices that are left: 2,000 took a gigabyte,
/// and ten thousand had no end.
#[test]
fn thousands_of_keys_on_which_others_depend() {
    let schemas = |at: usize| {
        let then = json!({"properties": {format!("t{at}"): {"enum": ["a", format!("v{}", at % 50)]}}});
        (format!("k{at}"), then)
    };
    let one_key = |at: usize| {
        let then = json!({"properties": {"t": {"enum": ["a", format!("v{}", at % 50)]}}});
        (format!("k{at}"), then)
    };
    let required = |at: usize| (format!("k{at}"), json!([format!("t{at}")]));
    // What is named in `properties` comes before what is only required.
    let many = [
        (
            json!({"dependentSchemas": object(3_000, schemas)}),
            r#"{"t2999": "a", "k2999": 1}"#,
            r#"{"t2999": "b", "k2999": 1}"#,
        ),
        (
            json!({"dependentSchemas": object(3_000, one_key)}),
            r#"{"t": "a", "k2999": 1}"#,
            r#"{"t": "b", "k2999": 1}"#,
        ),
        (
            json!({"dependentRequired": object(3_000, required)}),
            r#"{"k2999": 1, "t2999": 1}"#,
            r#"{"k2999": 1}"#,
        ),
    ];
    for (schema, right, wrong) in many {
        let report = lexiform::schema::report(
            &schema.to_string(),
            &Options::default().schema,
            &Limits::default(),
        );
        assert!(
            !report.expect("it compiles").is_exact(),
            "what is left out is noted"
        );
        let grammar = compile(&schema).expect("some of the ways");
        assert!(accepts(&grammar, "{}"));
        assert!(accepts(&grammar, right));
        assert!(!accepts(&grammar, wrong));
    }
}

/// How discriminated unions are written where there is no `oneOf`: seventy of them had been too many ways.
/// The discriminator is written first.
#[test]
fn hundreds_of_conditions_about_one_key() {
    let condition = |at: usize| {
        let asked = json!({"properties": {"kind": {"const": format!("k{at}")}}, "required": ["kind"]});
        let key = format!("a{at}");
        json!({"if": asked, "then": {"properties": {&key: {"type": "string"}}, "required": [key]}})
    };
    let conditions: Vec<Value> = (0..300).map(condition).collect();
    let schema = json!({"type": "object", "allOf": conditions, "required": ["kind"]});
    let report = lexiform::schema::report(
        &schema.to_string(),
        &Options::default().schema,
        &Limits::default(),
    );
    assert!(report.expect("it compiles").is_exact(), "nothing is left out");
    let grammar = compile(&schema).expect("as many cases as there are kinds");
    assert!(accepts(&grammar, r#"{"kind": "k299", "a299": "x", "more": 1}"#));
    assert!(accepts(&grammar, r#"{"kind": "none of them"}"#));
    assert!(!accepts(&grammar, r#"{"a299": "x", "kind": "k299"}"#));
    assert!(!accepts(&grammar, r#"{"kind": "k299", "a299": 1}"#));
    assert!(!accepts(&grammar, r#"{"kind": "k299", "a298": "x"}"#));
    // The first of two keys tells which conditions matter.
    let of_two = |at: usize| {
        let asked = json!({"properties": {"kind": {"const": at}, "size": {"const": at % 3}}, "required": ["kind", "size"]});
        json!({"if": asked, "then": {"required": [format!("a{at}")]}})
    };
    let conditions: Vec<Value> = (0..200).map(of_two).collect();
    let grammar = compile(&json!({"type": "object", "allOf": conditions})).expect("and of two keys");
    assert!(accepts(&grammar, r#"{"kind": 100, "size": 1, "a100": "x"}"#));
    assert!(accepts(&grammar, r#"{"kind": 100, "size": 2}"#));
    assert!(!accepts(&grammar, r#"{"kind": 100, "size": 1}"#));
}

/// Each condition is a choice that is looked at whenever another one is made, with all that is known by then.
#[test]
fn thousands_of_choices_in_one_object() {
    let all_of = |way: &dyn Fn(usize) -> Value| {
        let list: Vec<Value> = (0..1_000).map(way).collect();
        json!({"type": "object", "allOf": list})
    };
    let either =
        all_of(&|at| json!({"anyOf": [{"required": [format!("a{at}")]}, {"required": [format!("b{at}")]}]}));
    let grammar = compile(&either).expect("some of the ways");
    let keys: Vec<String> = (0..1_000).map(|at| format!("\"a{at}\": 1")).collect();
    assert!(accepts(&grammar, &format!("{{{}}}", keys.join(", "))));
    assert!(!accepts(&grammar, &format!("{{{}}}", keys[1..].join(", "))));
    let is_one =
        |at: usize| json!({"properties": {format!("a{at}"): {"const": 1}}, "required": [format!("a{at}")]});
    let denied = compile(&all_of(&|at| json!({"not": is_one(at)}))).expect("some of the ways");
    assert!(!accepts(&denied, "{\"a999\": 1}"));
    let condition = all_of(&|at| json!({"if": is_one(at), "then": {"required": [format!("b{at}")]}}));
    let grammar = compile(&condition).expect("some of the ways");
    assert!(!accepts(&grammar, "{\"a999\": 1}"));
}

/// Of 2,000 alternatives there are two million pairs, of which each had been looked at: seconds, and no fuel
/// was left then. Mostly it is seen at once which of them exclude one another.
#[test]
fn thousands_of_which_one_holds() {
    let one_of = |way: &dyn Fn(usize) -> Value| {
        let list: Vec<Value> = (0..2_000).map(way).collect();
        json!({"type": "object", "oneOf": list})
    };
    let kind = |value: Value, at: usize| {
        let properties =
            json!({"v": {"const": 1}, "kind": {"const": value}, format!("a{at}"): {"type": "string"}});
        json!({"properties": properties, "required": ["v", "kind"]})
    };
    let own_key = |at: usize| {
        let key = format!("a{at}");
        json!({"properties": {&key: {"type": "string"}}, "required": [key], "additionalProperties": false})
    };
    let apart = [
        (
            one_of(&|at| kind(json!(format!("k{at}")), at)),
            r#"{"v": 1, "kind": "k1999", "a1999": "x"}"#,
            r#"{"v": 1, "kind": "k1999", "a1999": 1}"#,
        ),
        (
            one_of(&|at| kind(json!(at), at)),
            r#"{"v": 1, "kind": 1999, "a1999": "x"}"#,
            r#"{"v": 1, "kind": 1998.5}"#,
        ),
        (
            one_of(&own_key),
            r#"{"a1999": "x"}"#,
            r#"{"a1999": "x", "a1998": "x"}"#,
        ),
    ];
    for (schema, right, wrong) in apart {
        let grammar = compile(&schema).expect("they exclude one another");
        assert!(accepts(&grammar, right), "{right}");
        assert!(!accepts(&grammar, wrong), "{wrong}");
    }
    let unions = |at: usize| {
        let parts: Vec<Value> = (0..40).map(|part| kind(json!(40 * at + part), part)).collect();
        json!({ "oneOf": parts })
    };
    let unions: Vec<Value> = (0..40).map(unions).collect();
    let grammar =
        compile(&json!({"type": "object", "oneOf": unions})).expect("unions exclude one another, too");
    assert!(accepts(&grammar, r#"{"v": 1, "kind": 45, "a5": "x"}"#));
    assert!(!accepts(&grammar, r#"{"v": 1, "kind": 45, "a5": 1}"#));
    // All of them refer to the same long lists, which are not looked at for each.
    let keys: Vec<String> = (0..3_000).map(|at| format!("k{at}")).collect();
    let long = json!({"required": keys, "properties": {"k0": {"enum": keys}}});
    let same: Vec<Value> = (0..3_000).map(|_| json!({"$ref": "#/$defs/long"})).collect();
    let same = json!({"type": "object", "oneOf": same, "$defs": {"long": long}});
    assert!(compile(&same).is_err(), "all hold, or none");
    let alike = one_of(&|at| json!({"required": [format!("a{at}")]}));
    assert_limited(&compile(&alike).expect_err("each is denied beside each"));
}

#[test]
fn fuel_bounds_the_algebra() {
    let limits = Limits {
        fuel: 500,
        ..Limits::default()
    };
    let branches: Vec<Value> = (0..40)
        .map(|at| json!({"required": [format!("k{at}")]}))
        .collect();
    let schema = json!({"type": "object", "oneOf": branches}).to_string();
    let error = lexiform_syntax::schema::lower(&schema, &Options::default().schema, &limits);
    assert_limited(&error.expect_err("1,600 pairs cost more than 500 steps"));
}
