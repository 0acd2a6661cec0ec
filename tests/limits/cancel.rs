//! A cancelled compile ends, reports it, and leaves nothing unfinished behind.
//!
//! No clock is used: a compile checks for cancellation wherever it counts work, and the checks are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lexiform::Grammar;
use lexiform::error::{CompileError, ProblemKind};
use lexiform::limits::{Cancel, Limits};
use lexiform::project::{Profile, Projector, Toward};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source, unless_cancelled};
use lexiform_syntax::schema;
use serde_json::{Map, Value, json};

fn compiler() -> Compiler {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let bytes = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte]));
    let tokens: Vec<_> = std::iter::once(eos).chain(bytes).collect();
    Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")))
}

/// Returns limits of a compile that is cancelled at the given check, and the number of checks so far.
fn called_off(at: usize) -> (Options, Arc<AtomicUsize>) {
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = looks.clone();
    let limits = Limits {
        cancel: Cancel::when(move || counted.fetch_add(1, Ordering::Relaxed) + 1 >= at),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    (options, looks)
}

fn object(count: usize, entry: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..count).map(entry).collect::<Map<String, Value>>())
}

/// Returns expensive sources for each of the stages.
fn expensive() -> Vec<(&'static str, String)> {
    let condition = |at: usize| {
        json!({"if": {"properties": {format!("k{at}"): {"const": 1}}, "required": [format!("k{at}")]},
               "then": {"required": [format!("r{at}")]}, "else": {"required": [format!("s{at}")]}})
    };
    let conditions = json!({"allOf": (0..24).map(condition).collect::<Vec<_>>()});
    let counted = object(20, |at| {
        (
            format!("p{at}"),
            json!({"pattern": format!("^(?:\\S+\\s+){{0,{}}}\\S+$", 20 + at)}),
        )
    });
    let apart = object(60, |at| (format!("^a{at}b*$"), json!({"type": "integer"})));
    let clash = (0..40).map(|at| json!({"minimum": at, "pattern": format!("^a{at}"), "maxLength": 1}));
    let branch = |at: usize| {
        json!({"anyOf": [{"properties": {format!("p{at}"): {"type": "string"}}},
                         {"properties": {format!("q{at}"): {"type": "integer"}}}]})
    };
    let branches = json!({"allOf": (0..6).map(branch).collect::<Vec<_>>(), "unevaluatedProperties": false});
    vec![
        ("branches", branches.to_string()),
        ("algebra", conditions.to_string()),
        ("patterns", json!({ "properties": counted }).to_string()),
        (
            "keys",
            json!({"patternProperties": apart, "additionalProperties": false}).to_string(),
        ),
        (
            "clash",
            json!({"type": "string", "allOf": clash.collect::<Vec<_>>()}).to_string(),
        ),
        (
            "counts",
            json!({"type": "string", "minLength": 6_000, "maxLength": 20_000, "pattern": "^(ab|c)*(de|f)*$"})
                .to_string(),
        ),
        (
            "properties",
            json!({"properties": object(400, |at| (format!("k{at}"), json!({"type": "integer"})))})
                .to_string(),
        ),
    ]
}

fn assert_called_off(what: &str, result: Result<impl Sized, CompileError>) {
    let error = result.err().unwrap_or_else(|| panic!("{what}: it compiled"));
    let kinds: Vec<ProblemKind> = error.problems.iter().map(|problem| problem.kind).collect();
    assert_eq!(kinds, [ProblemKind::Cancelled], "{what}: {error}");
}

#[test]
fn what_is_called_off_before_it_begins_ends_at_its_first_look() {
    let compiler = compiler();
    let sources = [
        Source::JsonSchema("{\"type\": \"object\"}"),
        Source::JsonSchema("{\"type\": 1}"),
        Source::Regex("[a-z]+"),
        Source::Ebnf("root ::= \"a\" root | \"b\""),
    ];
    for source in sources {
        let (options, looks) = called_off(1);
        assert_called_off(
            source.texts().next().unwrap_or_default(),
            compiler.compile(source, &options),
        );
        assert_eq!(looks.load(Ordering::Relaxed), 1, "a yes is not asked for again");
    }
    let (options, _) = called_off(1);
    assert_called_off("report", schema::report("true", &options.schema, &options.limits));
    assert_called_off(
        "normal form",
        schema::normal_form("true", &options.schema, &options.limits),
    );
}

/// Whatever a compile has done by then, it always ends with this error.
#[test]
fn a_compile_can_be_called_off_at_every_stage() {
    for (what, source) in expensive() {
        let (options, looks) = called_off(usize::MAX);
        let _ = compiler().compile(Source::JsonSchema(&source), &options);
        let looks = looks.load(Ordering::Relaxed);
        assert!(looks > 100, "{what} looks only {looks} times");
        for part in 0..5 {
            // Each compile uses a fresh compiler: one with filled caches checks less often.
            let (options, _) = called_off(1 + looks * part / 5);
            assert_called_off(what, compiler().compile(Source::JsonSchema(&source), &options));
        }
    }
}

/// Guards against passes of a projection that go on for nobody once the normal forms are there: each of the
/// many properties is looked at in the source, in the forms, and in what is written.
#[test]
fn a_projection_can_be_called_off_at_every_stage() {
    let property = |at: usize| {
        (
            format!("p{at}"),
            json!({"type": "object", "properties": {"a": {"minLength": 1}}}),
        )
    };
    let source = json!({"type": "object", "properties": object(300, property)}).to_string();
    let (whole, _) = called_off(usize::MAX);
    let projector = Projector::new(&source, &whole.schema, &whole.limits).expect("it compiles");
    for name in Profile::names() {
        let profile = Profile::named(name).expect("a profile of the library");
        let project = |limits: &Limits| projector.project(&profile, Toward::Wider, limits).map(|_| ());
        let (options, looks) = called_off(usize::MAX);
        project(&options.limits).expect("it can be written");
        let looks = looks.load(Ordering::Relaxed);
        assert!(looks > 300, "{name}: {looks} looks");
        for part in 0..12 {
            let (options, _) = called_off(1 + looks * part / 12);
            assert_called_off(name, project(&options.limits));
        }
        // What was called off is not remembered.
        project(&Limits::default()).expect("it can be written");
    }
    let (options, looks) = called_off(1);
    assert_called_off(
        "refusals",
        projector.refusals(&Profile::named("gemini").expect("known"), &options.limits),
    );
    assert_eq!(looks.load(Ordering::Relaxed), 1);
}

fn allowed(grammar: &Grammar, text: &str) -> Vec<Vec<u32>> {
    let mut state = grammar.start();
    let mut masks = vec![grammar.mask(state).iter().collect()];
    for byte in text.bytes() {
        state = grammar
            .step_bytes(state, &[byte])
            .expect("the text belongs to it");
        masks.push(grammar.mask(state).iter().collect());
    }
    masks
}

/// Guards against shared tables that a compile had begun to fill.
#[test]
fn what_was_called_off_leaves_nothing_behind_that_others_see() {
    let source =
        json!({"properties": {"a": {"pattern": "^(?:\\S+\\s+){0,20}\\S+$"}, "b": {"maxLength": 70}}})
            .to_string();
    let source = Source::JsonSchema(&source);
    let (options, looks) = called_off(usize::MAX);
    let (untouched, _) = compiler().compile(source, &options).expect("it compiles");
    let looks = looks.load(Ordering::Relaxed);
    let shared = compiler();
    for at in (1..=looks).step_by(looks / 40 + 1) {
        // The later compiles may complete: the parts that the earlier ones had completed are shared.
        let _ = shared.compile(source, &called_off(at).0);
    }
    let (grammar, _) = shared.compile(source, &Options::default()).expect("it compiles");
    let text = "{\"a\": \"one two\", \"b\": \"three\"}";
    assert_eq!(allowed(&grammar, text), allowed(&untouched, text));
}

/// A schema whose lists are judged by many counts: each item may or may not be one that must be there.
fn counted() -> String {
    let all: Vec<u32> = (0..80).collect();
    let some: Vec<u32> = (0..80).step_by(2).collect();
    json!({"type": "array", "uniqueItems": true, "items": {"enum": all}, "contains": {"enum": some},
           "minContains": 20, "maxContains": 21, "minItems": 40})
    .to_string()
}

/// Guards against searches behind a compile that go on for nobody: what lists remember is judged by the same
/// meter as everything else.
#[test]
fn queries_can_be_cancelled_wherever_they_are() {
    let source = counted();
    let compiled = || {
        let compiled = compiler().compile(Source::JsonSchema(&source), &Options::default());
        compiled.expect("it compiles").0
    };
    let ask = |grammar: &Grammar| {
        let start = grammar.start();
        (
            grammar.try_min_completion(start),
            grammar.mask(start).iter().collect::<Vec<_>>(),
        )
    };
    let (untouched, grammar) = (ask(&compiled()), compiled());
    let (options, looks) = called_off(usize::MAX);
    let cancel = options.limits.cancel;
    assert_eq!(
        unless_cancelled(&cancel, || ask(&compiled())),
        Some(untouched.clone())
    );
    let looks = looks.load(Ordering::Relaxed);
    assert!(looks > 30, "it is asked only {looks} times");
    for part in 0..5 {
        let cancel = called_off(1 + looks * part / 5).0.limits.cancel;
        assert_eq!(
            unless_cancelled(&cancel, || ask(&compiled())),
            None,
            "{part} of 5"
        );
        // What was found until then is kept, and the rest is found later.
        unless_cancelled(&called_off(1 + looks * part / 5).0.limits.cancel, || {
            ask(&grammar)
        });
    }
    assert_eq!(ask(&grammar), untouched);
}
