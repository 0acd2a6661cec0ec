//! Memory is counted like work: every compile ends within its bytes, and the counted bytes are at most a
//! little fewer than those requested from the allocator.
//!
//! Nothing here uses a clock. Each of these sources once took gigabytes, or minutes.

use crate::allocator;
use std::sync::Arc;

use allocator::most_held;
use lexiform::Grammar;
use lexiform::error::{CompileError, Place, ProblemKind};
use lexiform::limits::{Limits, Meter};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform_syntax::schema;
use serde_json::{Map, Value, json};

/// The maximum number of bytes that any compile may hold.
const MOST: usize = 256 << 20;

/// The bytes that are not counted: tables that all compiles share, buffers of an automaton while it is built,
/// and a share in proportion.
const UNCOUNTED: usize = 48 << 20;

fn compiler() -> Compiler {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let bytes = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte]));
    let tokens: Vec<_> = std::iter::once(eos).chain(bytes).collect();
    Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")))
}

fn metered(limits: Limits) -> (Options, Meter) {
    let meter = Meter::default();
    let options = Options {
        limits: Limits {
            meter: meter.clone(),
            ..limits
        },
        ..Options::default()
    };
    (options, meter)
}

/// Compiles a source and compares the count with the allocator.
fn compile(name: &str, source: Source<'_>) -> Result<Grammar, CompileError> {
    let compiler = compiler();
    let (options, meter) = metered(Limits::default());
    let (compiled, held) = most_held(|| compiler.compile(source, &options));
    let counted = meter.peak();
    assert!(held <= MOST, "{name}: {held} bytes");
    assert!(
        held <= counted + counted / 2 + UNCOUNTED,
        "{name}: {held} bytes, of which {counted} were counted"
    );
    assert!(counted <= options.limits.compile_bytes, "{name}: {counted}");
    assert_eq!(meter.held(), 0, "{name}: all is given back");
    compiled.map(|(grammar, _)| grammar)
}

fn list(count: usize, entry: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..count).map(entry).collect()
}

fn object(count: usize, entry: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..count).map(entry).collect::<Map<String, Value>>())
}

fn key(at: usize) -> String {
    format!("k{at}")
}

/// Nests a schema in objects with a long key each, so that every pointer into it is long.
fn below_long_keys(inner: Value) -> Value {
    (0..50).fold(
        inner,
        |inner, _| json!({"properties": {"k".repeat(8_000): inner}}),
    )
}

/// Returns this many independent choices beside a keyword about unevaluated parts.
fn unevaluated(keyword: &str, count: usize) -> Value {
    let ways = |at: usize| {
        json!({keyword: [{"properties": {format!("p{at}"): {"type": "string"}}},
                         {"properties": {format!("q{at}"): {"type": "integer"}}}]})
    };
    json!({"allOf": list(count, ways), "unevaluatedProperties": false})
}

/// Returns schemas that no compile can finish; each is refused with a limit and a pointer.
fn refused() -> Vec<(&'static str, Value)> {
    let both = |at: usize| json!({"if": {"properties": {key(at): {"const": 1}}}, "then": {"properties": {format!("q{at}"): {}}}});
    let wide = |at: usize| json!({"anyOf": [{"properties": object(1_000, |name| (format!("p{at}_{name}"), json!({})))}, {"required": [key(at)]}]});
    let places = |at: usize| json!({"anyOf": [{"prefixItems": vec![json!({"type": "string"}); at + 1]}, {"contains": {"const": at}}]});
    vec![
        ("one of two, 20 times", unevaluated("oneOf", 20)),
        ("one of two, 200 times", unevaluated("oneOf", 200)),
        ("any of two, 12 times", unevaluated("anyOf", 12)),
        ("any of two, 40 times", unevaluated("anyOf", 40)),
        ("the denial of such", json!({"not": unevaluated("oneOf", 20)})),
        (
            "conditions",
            json!({"allOf": list(30, both), "unevaluatedProperties": false}),
        ),
        (
            "many names in each",
            json!({"allOf": list(12, wide), "unevaluatedProperties": false}),
        ),
        (
            "items",
            json!({"allOf": list(30, places), "unevaluatedItems": false}),
        ),
        (
            "many additional properties beside many names",
            json!({"allOf": list(6_000, |at| json!({"additionalProperties": {"minimum": at}})),
                   "properties": object(12_000, |at| (key(at), json!({})))}),
        ),
        (
            "findings with long pointers",
            below_long_keys(json!({"properties": object(8_000, |at| (key(at), json!({"unknown": 1})))})),
        ),
    ]
}

#[test]
fn what_is_too_large_is_refused_before_it_is_made() {
    for (name, schema) in refused() {
        let error = compile(name, Source::JsonSchema(&schema.to_string()))
            .err()
            .unwrap_or_else(|| panic!("{name} is too large"));
        for problem in &error.problems {
            assert_eq!(problem.kind, ProblemKind::Limit, "{name}: {problem}");
        }
    }
}

/// Returns schemas that are large but otherwise harmless.
fn allowed() -> Vec<(&'static str, Value)> {
    let one = |name: String| json!({"properties": {&name: {"type": "string"}}, "required": [name]});
    let choice = |at: usize| json!({"oneOf": [one(format!("p{at}")), one(format!("q{at}"))]});
    let deep = object(4_000, |at| (key(at), json!({"properties": {"x": {"const": at}}})));
    vec![
        (
            "nine choices of one",
            json!({"allOf": list(9, choice), "unevaluatedProperties": false}),
        ),
        ("six choices of any", unevaluated("anyOf", 6)),
        ("true, very often", json!({"allOf": vec![true; 30_000]})),
        ("any of true", json!({"anyOf": vec![true; 30_000]})),
        ("required", json!({"required": list(30_000, |at| json!(key(at)))})),
        (
            "rules with long names",
            below_long_keys(json!({"properties": deep})),
        ),
        (
            "narrowed formats",
            json!({"properties": object(6_000, |at| (key(at), json!({"format": "hostname"})))}),
        ),
    ]
}

#[test]
fn what_is_large_and_nothing_else_compiles() {
    for (name, schema) in allowed() {
        let compiled = compile(name, Source::JsonSchema(&schema.to_string()));
        assert!(compiled.is_ok(), "{name}: {}", compiled.expect_err("it failed"));
    }
}

/// For these sources it only matters that the compile ends within its bytes.
#[test]
fn whatever_it_is_it_ends_within_its_bytes() {
    let bounds = |at: usize| {
        let (low, high) = ("1".repeat(at + 100), "2".repeat(at + 101));
        serde_json::from_str::<Value>(&format!("{{\"minimum\": {low}, \"maximum\": {high}}}")).expect("JSON")
    };
    let multiple = |at: usize| json!({"multipleOf": 1_000_003 + at});
    let alternative = |at: usize| json!({"required": [key(at)]});
    let schemas = [
        ("long bounds", json!({"anyOf": list(500, bounds)})),
        (
            "multiples",
            json!({"type": "integer", "anyOf": list(60, multiple)}),
        ),
        (
            "alternatives of many names",
            json!({"properties": object(8_000, |at| (key(at), json!({}))), "anyOf": list(1_500, alternative)}),
        ),
        (
            "problems with long pointers",
            below_long_keys(json!({"properties": object(8_000, |at| (key(at), json!({"minimum": "x"})))})),
        ),
        (
            "references with long pointers",
            below_long_keys(json!({"properties": object(8_000, |at| (key(at), json!({"$ref": "#/x"})))})),
        ),
        (
            "a long URI that many are resolved against",
            json!({"$id": format!("http://x/{}", "y/".repeat(100_000)),
                   "$defs": object(10_000, |at| (key(at), json!({"$id": key(at)})))}),
        ),
    ];
    for (name, schema) in schemas {
        let _ = compile(name, Source::JsonSchema(&schema.to_string()));
    }
    let references = format!("root ::= {}a\na ::= \"x\" a | \"y\"", "a | ".repeat(150_000));
    let _ = compile("references", Source::Ebnf(&references));
    let classes = format!("root ::= {}", "[\\u0001-\\uFFFF] ".repeat(30_000));
    let _ = compile("classes", Source::Ebnf(&classes));
    let _ = compile("counts", Source::Regex("((a{1,100}){1,100}){1,100}"));
    let _ = compile("subsets", Source::Regex("(?:.*[a-m].*[n-z]){12}"));
}

#[test]
fn the_limit_is_named_with_its_value_and_a_place() {
    let schema =
        json!({"properties": object(2_000, |at| (key(at), json!({"enum": [at, key(at)]})))}).to_string();
    let (options, meter) = metered(Limits {
        compile_bytes: 1 << 20,
        ..Limits::default()
    });
    let error = compiler()
        .compile(Source::JsonSchema(&schema), &options)
        .expect_err("a megabyte is too little");
    let [problem] = &error.problems[..] else {
        panic!("{error}")
    };
    assert_eq!(problem.kind, ProblemKind::Limit);
    assert!(problem.message.contains("compile_bytes"), "{problem}");
    assert!(problem.message.contains("1048576"), "{problem}");
    assert!(meter.peak() <= 1 << 20);
    let choices = unevaluated("oneOf", 9).to_string();
    let error = compiler()
        .compile(Source::JsonSchema(&choices), &options)
        .expect_err("nor for this");
    assert!(matches!(error.problems[0].place, Place::Pointer(_)), "{error}");
}

#[test]
fn compiles_share_a_meter_and_one_that_others_leave_no_room_for_is_told_so() {
    let all = Meter::new(1 << 20);
    let options = schema::Options::default();
    let small = Limits {
        meter: Meter::within(&all, usize::MAX),
        ..Limits::default()
    };
    assert!(schema::lower("{\"type\": \"object\"}", &options, &small).is_ok());
    assert!(all.peak() > 0 && all.held() == 0);
    let large = json!({"properties": object(5_000, |at| (key(at), json!({})))}).to_string();
    let error = schema::lower(&large, &options, &small).expect_err("they share a megabyte");
    assert_eq!(error.problems[0].kind, ProblemKind::Busy, "{error}");
    assert!(schema::lower(&large, &options, &Limits::default()).is_ok());
    assert_eq!(all.held(), 0);
}
