//! Invalid or hostile schemas: each is an error with a place, and all problems are reported at once.

use std::sync::Arc;

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::{Place, ProblemKind};
use lexiform::schema::KeyOrder;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use serde_json::{Value, json};

fn compile_in(schema: &str, key_order: KeyOrder) -> Result<Grammar, CompileError> {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let bytes = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte]));
    let tokens: Vec<_> = std::iter::once(eos).chain(bytes).collect();
    let compiler = Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")));
    let mut options = Options::default();
    options.schema.key_order = key_order;
    let compiled = compiler.compile(Source::JsonSchema(schema), &options);
    compiled.map(|(grammar, _)| grammar)
}

fn compile(schema: &Value) -> Result<Grammar, CompileError> {
    compile_in(&schema.to_string(), KeyOrder::Schema)
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    let end = grammar.step_bytes(grammar.start(), text.as_bytes());
    end.is_some_and(|state| grammar.is_accepting(state))
}

/// Returns keywords with invalid values.
fn wrong() -> Vec<(&'static str, Value)> {
    let mut wrong = vec![
        ("type", json!(1)),
        ("type", json!("int")),
        ("type", json!([])),
        ("type", json!(["string", 1])),
        ("enum", json!("a")),
        ("multipleOf", json!(0)),
        ("multipleOf", json!(-1)),
        ("pattern", json!("(")),
        ("pattern", json!("[z-a]")),
        ("pattern", json!("a{3,2}")),
        ("pattern", json!("(?<n>a)\\k<n>")),
        ("patternProperties", json!({"(": true})),
        ("required", json!("a")),
        ("required", json!([1])),
        ("dependentRequired", json!({"a": "b"})),
        ("dependentSchemas", json!({"a": "b"})),
        ("uniqueItems", json!("yes")),
        ("$ref", json!("#/nowhere")),
        ("$ref", json!("https://example.com/nowhere")),
        ("$dynamicRef", json!("#nowhere")),
    ];
    let with = |keys: &[&'static str], values: &[Value]| -> Vec<(&'static str, Value)> {
        let pairs = keys
            .iter()
            .flat_map(|&key| values.iter().map(move |value| (key, value.clone())));
        pairs.collect()
    };
    let counts = [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minContains",
        "maxContains",
        "minProperties",
        "maxProperties",
    ];
    let numbers = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ];
    let texts = ["pattern", "format", "$ref", "$dynamicRef"];
    let schemas = [
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "unevaluatedItems",
        "items",
        "contains",
        "not",
        "if",
    ];
    let maps = [
        "properties",
        "patternProperties",
        "dependentSchemas",
        "dependentRequired",
        "$defs",
    ];
    wrong.extend(with(
        &counts,
        &[json!("1"), json!(-1), json!(1.5), json!(null), json!([2])],
    ));
    wrong.extend(with(&numbers, &[json!("1"), json!(null), json!({})]));
    wrong.extend(with(&texts, &[json!(1), json!(["a"])]));
    wrong.extend(with(&schemas, &[json!(1), json!("a"), json!(null)]));
    wrong.extend(with(
        &["prefixItems", "allOf", "anyOf", "oneOf"],
        &[json!(1), json!({}), json!([1])],
    ));
    wrong.extend(with(&maps, &[json!(1), json!([]), json!("a")]));
    wrong
}

/// Returns the pointers of all problems.
fn places(error: &CompileError) -> Vec<&str> {
    let pointers = error.problems.iter().map(|problem| match &problem.place {
        Place::Pointer(pointer) => pointer.as_str(),
        other => panic!("{other} is no pointer: {error}"),
    });
    pointers.collect()
}

#[test]
fn a_keyword_of_a_wrong_kind_is_an_error_at_its_place() {
    for (key, value) in wrong() {
        let schema = json!({ key: value });
        let error = compile(&schema)
            .err()
            .unwrap_or_else(|| panic!("{schema} compiles"));
        for problem in &error.problems {
            assert_ne!(problem.kind, ProblemKind::Unsatisfiable, "{schema}: {problem}");
        }
        let at = format!("/{}", key.replace('~', "~0"));
        for place in places(&error) {
            assert!(place.starts_with(&at), "{schema}: {place}");
        }
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let wrong: Vec<(&str, Value)> = wrong()
        .into_iter()
        .filter(|(key, value)| *key != "$defs" && !(*key == "pattern" && value == "(?<n>a)\\k<n>"))
        .collect();
    let members = wrong.iter().enumerate();
    let members = members.map(|(at, (key, value))| (format!("p{at:03}"), json!({*key: value})));
    let error = compile(&json!({"properties": Value::Object(members.collect())})).expect_err("much is wrong");
    let places = places(&error);
    let of = |at: usize| {
        places
            .iter()
            .any(|place| place.starts_with(&format!("/properties/p{at:03}/")))
    };
    let missing: Vec<&(&str, Value)> = (0..wrong.len())
        .filter(|&at| !of(at))
        .map(|at| &wrong[at])
        .collect();
    // References are followed once everything else is right.
    let followed = |entry: &&&(&str, Value)| !entry.0.ends_with("ef") || !entry.1.is_string();
    assert_eq!(
        missing.iter().filter(followed).count(),
        0,
        "nothing is told of {missing:?}"
    );
}

#[test]
fn what_is_no_schema_is_an_error() {
    for text in [
        "",
        "1",
        "\"a\"",
        "[]",
        "null",
        "{",
        "{\"type\": }",
        "{} {}",
        "{\"a\": 1,}",
        "\u{0}",
    ] {
        assert!(compile_in(text, KeyOrder::Schema).is_err(), "{text:?} compiles");
    }
}

/// A reference that comes back to its place without anything read in between says nothing, or the opposite of
/// itself.
#[test]
fn references_in_a_circle_are_errors_and_end() {
    let to = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    let circles = [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": to("b"), "b": to("c"), "c": to("a")}, "$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"allOf": [{"type": "object"}, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"not": {"not": {"$ref": "#"}}}),
        json!({"oneOf": [{"$ref": "#"}, {"type": "null"}]}),
        json!({"if": {"$ref": "#"}, "then": false}),
        json!({"$dynamicAnchor": "it", "$dynamicRef": "#it"}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": {"$ref": "#"}}}),
    ];
    for schema in circles {
        let error = compile(&schema)
            .err()
            .unwrap_or_else(|| panic!("{schema} compiles"));
        assert!(!places(&error).is_empty(), "{schema}");
    }
}

#[test]
fn references_that_read_something_on_their_way_round_are_none() {
    for schema in [
        json!({"properties": {"a": {"$ref": "#"}}}),
        json!({"items": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}),
        json!({"additionalProperties": {"not": {"$ref": "#"}}, "type": "object"}),
        json!({"contains": {"$ref": "#"}, "minContains": 0, "type": "array"}),
    ] {
        let grammar = compile(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        let empty = if schema["type"] == "object" { "{}" } else { "[]" };
        assert!(accepts(&grammar, empty), "{schema}");
    }
}

/// Nesting of every kind, five hundred deep: a grammar or a limit, and never a stack that overflows.
#[test]
fn five_hundred_levels_of_anything_end() {
    let levels =
        |level: &dyn Fn(Value) -> Value| (0..500).fold(json!({"type": "null"}), |inner, _| level(inner));
    let nested: [&dyn Fn(Value) -> Value; 11] = [
        &|inner| json!({"type": "array", "uniqueItems": true, "items": inner, "contains": {"minItems": 1}}),
        &|inner| json!({"items": inner}),
        &|inner| json!({"properties": {"a": inner}}),
        &|inner| json!({"not": inner}),
        &|inner| json!({"allOf": [inner]}),
        &|inner| json!({"anyOf": [inner, {"type": "string"}]}),
        &|inner| json!({"oneOf": [inner]}),
        &|inner| json!({"if": inner, "then": true, "else": false}),
        &|inner| json!({"contains": inner}),
        &|inner| json!({"unevaluatedProperties": inner}),
        &|inner| json!({"dependentSchemas": {"a": inner}}),
    ];
    for level in nested {
        let schema = levels(level);
        if let Err(error) = compile(&schema) {
            assert!(!error.problems.is_empty());
        }
    }
    let chain = (0..500).map(|at| (format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)})));
    let mut definitions = Value::Object(chain.collect());
    definitions["d500"] = json!({"type": "null"});
    let grammar = compile(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).expect("a long way round");
    assert!(accepts(&grammar, "null") && !accepts(&grammar, "1"));
    let value = (0..400).fold(json!([]), |inner, _| json!([inner]));
    let grammar = compile(&json!({ "const": value })).expect("a deep value");
    assert!(accepts(&grammar, &value.to_string()));
    let groups = format!("^{}a{}$", "(".repeat(5_000), ")".repeat(5_000));
    assert!(
        compile(&json!({ "pattern": groups })).is_err(),
        "groups nest too deep"
    );
}

#[test]
fn ten_thousand_keys_that_must_all_be_written_may_come_in_any_order() {
    let names: Vec<String> = (0..10_000).map(|at| format!("key{at:05}")).collect();
    let members = names.iter().map(|name| (name.clone(), json!({"type": "null"})));
    let schema = json!({"type": "object", "properties": Value::Object(members.collect()), "required": names});
    let grammar = compile_in(&schema.to_string(), KeyOrder::Any).expect("many, not hard");
    let written = |names: &mut dyn Iterator<Item = &String>| {
        let members: Vec<String> = names.map(|name| format!("\"{name}\":null")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(accepts(&grammar, &written(&mut names.iter().rev())));
    assert!(!accepts(&grammar, &written(&mut names.iter().skip(1))));
}

/// Guards against arrays of unique items that are written inside themselves until the stack is used up.
#[test]
fn unique_items_that_are_such_arrays_themselves_end() {
    let schema = json!({"type": "array", "uniqueItems": true, "items": {"$ref": "#"}, "contains": {"maxItems": 1},
        "minContains": 0});
    let grammar = compile(&schema).expect("arrays");
    assert!(accepts(&grammar, "[[[]]]"));
    assert!(!accepts(&grammar, "[[],[]]"));
}

/// A megabyte of values of each kind.
#[test]
fn a_megabyte_of_values_is_only_large() {
    let numbers: Vec<Value> = (0..120_000).map(|at| json!(at * 7)).collect();
    let grammar = compile(&json!({ "enum": numbers })).expect("numbers");
    assert!(accepts(&grammar, "839993") && !accepts(&grammar, "839994"));
    let objects: Vec<Value> = (0..20_000)
        .map(|at| json!({"id": at, "name": format!("object {at}")}))
        .collect();
    let schema = json!({ "enum": objects }).to_string();
    let grammar = compile_in(&schema, KeyOrder::Any).expect("objects");
    assert!(accepts(&grammar, &objects[7].to_string()));
    assert!(!accepts(
        &grammar,
        &objects[7].to_string().replace("\"object 7\"", "\"object 8\"")
    ));
    let last = objects[19_999].to_string();
    assert!(accepts(&grammar, &last) && !accepts(&grammar, &last.replace("\"object", "\"thing")));
    // Each object is an alternative; none of them is left out.
    let options = Options::default();
    let (_, found) =
        lexiform_syntax::schema::lower(&schema, &options.schema, &options.limits).expect("objects");
    assert!(found.findings.is_empty(), "{}", found.findings[0]);
}
