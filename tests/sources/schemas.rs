//! Runs the corpus in `schemas/`: each folder is a claim about JSON Schema, and its files decide what is
//! asserted. `valid.jsonl` and `invalid.jsonl` have one JSON text on each line, `valid_in_any_order.jsonl`
//! has texts whose keys are not in the order of the schema, and `expected_error.txt` has the beginning of an
//! error message. `normal_form.txt` and `report.txt` have the printed forms of the schema; with
//! `GOLDEN=write` in the environment they are written anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::ProblemKind;
use lexiform::limits::Limits;
use lexiform::schema::KeyOrder;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform_syntax::schema;

/// Creates a vocabulary of all single bytes.
fn bytes() -> Arc<Vocabulary> {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let tokens: Vec<_> = std::iter::once(eos)
        .chain((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])))
        .collect();
    Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"))
}

fn claims() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut claims: Vec<PathBuf> = fs::read_dir(folder)
        .expect("schemas/")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    claims.sort();
    claims
}

fn lines(claim: &Path, file: &str) -> Vec<String> {
    fs::read_to_string(claim.join(file))
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn options(key_order: KeyOrder) -> Options {
    let mut options = Options::default();
    options.schema.key_order = key_order;
    options
}

fn compile(compiler: &Compiler, claim: &Path, order: KeyOrder) -> Result<Grammar, CompileError> {
    let schema = fs::read_to_string(claim.join("schema.json")).expect("schema.json");
    compiler
        .compile(Source::JsonSchema(&schema), &options(order))
        .map(|(grammar, _)| grammar)
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    grammar
        .step_bytes(grammar.start(), text.as_bytes())
        .is_some_and(|state| grammar.is_accepting(state))
}

fn check_texts(
    grammar: &Grammar,
    claim: &Path,
    file: &str,
    expected: bool,
    order: KeyOrder,
    faults: &mut Vec<String>,
) {
    let name = claim.file_name().expect("a name").to_string_lossy();
    for text in lines(claim, file) {
        if accepts(grammar, &text) != expected {
            let verb = if expected { "accepted" } else { "refused" };
            faults.push(format!(
                "{name}: {text} should be {verb} with key order {order:?}"
            ));
        }
    }
}

#[test]
fn every_claim_holds() {
    let compiler = Compiler::new(bytes());
    let mut faults = Vec::new();
    for claim in claims() {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let expected_error = lines(&claim, "expected_error.txt");
            match (compile(&compiler, &claim, order), expected_error.first()) {
                (Ok(grammar), None) => {
                    check_texts(&grammar, &claim, "valid.jsonl", true, order, &mut faults);
                    check_texts(&grammar, &claim, "invalid.jsonl", false, order, &mut faults);
                    let any = order == KeyOrder::Any;
                    check_texts(
                        &grammar,
                        &claim,
                        "valid_in_any_order.jsonl",
                        any,
                        order,
                        &mut faults,
                    );
                }
                (Ok(_), Some(error)) => {
                    faults.push(format!("{}: compiles, expected: {error}", claim.display()))
                }
                (Err(error), Some(expected)) if error.to_string().starts_with(expected) => {}
                (Err(error), _) => faults.push(format!("{}: {error}", claim.display())),
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

type Print = fn(&str) -> Result<String, CompileError>;

fn printed(claim: &Path, file: &str, print: Print, faults: &mut Vec<String>) {
    let path = claim.join(file);
    let Ok(recorded) = fs::read_to_string(&path) else {
        return;
    };
    let schema = fs::read_to_string(claim.join("schema.json")).expect("schema.json");
    let printed = print(&schema).expect("the schema compiles");
    if std::env::var("GOLDEN").is_ok_and(|value| value == "write") {
        fs::write(&path, &printed).expect("the file can be written");
    } else if printed != recorded {
        faults.push(format!("{}: now\n{printed}", path.display()));
    }
}

#[test]
fn normal_forms_and_reports_are_as_recorded() {
    let options = options(KeyOrder::Schema);
    assert_eq!(options.schema.refuse, schema::Refuse::Nothing);
    let normal_form: Print =
        |text| schema::normal_form(text, &schema::Options::default(), &Limits::default());
    let report: Print = |text| {
        let report = schema::report(text, &schema::Options::default(), &Limits::default());
        report.map(|report| report.to_string())
    };
    let mut faults = Vec::new();
    let mut recorded = 0;
    for claim in claims() {
        recorded += usize::from(claim.join("normal_form.txt").exists());
        printed(&claim, "normal_form.txt", normal_form, &mut faults);
        printed(&claim, "report.txt", report, &mut faults);
    }
    assert!(recorded >= 10, "{recorded} normal forms are recorded");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn strict_refuses_keywords_without_effect_and_nothing_else() {
    for (schema, strict, exact) in [
        (r#"{"type": "string"}"#, true, true),
        (r#"{"propertis": {}}"#, false, false),
        (
            r#"{"$schema": "http://json-schema.org/draft-07/schema#", "minContains": 2}"#,
            false,
            false,
        ),
        (r#"{"format": "hostname"}"#, true, false),
        (r#"{"format": "phone"}"#, true, false),
        (r#"{"x-note": 1}"#, true, true),
    ] {
        for (refuse, passes) in [
            (schema::Refuse::Nothing, true),
            (schema::Refuse::Ineffective, strict),
            (schema::Refuse::Inexact, exact),
        ] {
            let options = schema::Options {
                refuse,
                ..schema::Options::default()
            };
            let lowered = schema::lower(schema, &options, &Limits::default());
            assert_eq!(lowered.is_ok(), passes, "{schema} {refuse:?}");
        }
    }
}

#[test]
fn exact_refuses_whatever_is_narrower_or_without_effect_and_nothing_else() {
    let compiler = Compiler::new(bytes());
    for claim in claims()
        .iter()
        .filter(|claim| !claim.join("expected_error.txt").exists())
    {
        let schema = fs::read_to_string(claim.join("schema.json")).expect("schema.json");
        let mut options = options(KeyOrder::Schema);
        let report = schema::report(&schema, &options.schema, &options.limits).expect("it compiles");
        let lax = compiler
            .compile(Source::JsonSchema(&schema), &options)
            .expect("it compiles")
            .1;
        let mut ineffective = lax
            .findings
            .iter()
            .filter(|finding| schema::is_lost_assertion(finding) || schema::is_unknown_format(finding));
        let is_exact = report.is_exact() && ineffective.next().is_none();
        options.schema.refuse = schema::Refuse::Inexact;
        match compiler.compile(Source::JsonSchema(&schema), &options) {
            Ok(_) => assert!(is_exact, "{}\n{report}", claim.display()),
            Err(error) => {
                assert!(!is_exact, "{}: {error}", claim.display());
                let mut kinds = error.problems.iter().map(|problem| problem.kind);
                let is_finding = |kind| matches!(kind, ProblemKind::Narrowed | ProblemKind::Unsupported);
                assert!(kinds.all(is_finding), "{error}");
            }
        }
    }
}

#[test]
fn the_corpus_is_not_empty_and_every_folder_asserts_something() {
    let claims = claims();
    assert!(claims.len() >= 40, "{} claims", claims.len());
    for claim in claims {
        let asserts = ["valid.jsonl", "expected_error.txt"]
            .iter()
            .any(|file| claim.join(file).exists());
        assert!(asserts, "{} asserts nothing", claim.display());
    }
}

#[test]
fn all_problems_come_with_their_pointers() {
    let schema = r#"{"type": "strin", "properties": {"a": {"minLength": -1}, "b": {"pattern": "("}}, "required": "a"}"#;
    let error = Compiler::new(bytes())
        .compile(Source::JsonSchema(schema), &Options::default())
        .expect_err("bad");
    let places: Vec<String> = error
        .problems
        .iter()
        .map(|problem| problem.place.to_string())
        .collect();
    assert_eq!(
        places,
        [
            "#/properties/a/minLength",
            "#/properties/b/pattern",
            "#/required",
            "#/type"
        ]
    );
}

#[test]
fn misspelt_keywords_are_listed_beside_errors() {
    let places = |schema: &str| -> Vec<String> {
        match Compiler::new(bytes()).compile(Source::JsonSchema(schema), &Options::default()) {
            Ok(_) => Vec::new(),
            Err(error) => error.problems.iter().map(|it| it.place.to_string()).collect(),
        }
    };
    let wrong =
        r#"{"type": "objct", "requird": ["a"], "nullable": true, "properties": {"a": {"minLenght": 2}}}"#;
    assert_eq!(places(wrong), ["#/properties/a/minLenght", "#/requird", "#/type"]);
    assert_eq!(places(r#"{"type": "object", "requird": ["a"]}"#), [""; 0]);
}

#[test]
fn deep_and_wide_schemas_end() {
    let compiler = Compiler::new(bytes());
    let nested =
        |depth: usize| (0..depth).fold("{}".to_owned(), |inner, _| format!(r#"{{"items": {inner}}}"#));
    assert!(
        compiler
            .compile(Source::JsonSchema(&nested(500)), &Options::default())
            .is_ok()
    );
    assert!(
        compiler
            .compile(Source::JsonSchema(&nested(5_000)), &Options::default())
            .is_err()
    );

    let properties: Vec<String> = (0..10_000)
        .map(|at| format!(r#""p{at}": {{"type": "integer"}}"#))
        .collect();
    let wide = format!(
        r#"{{"type": "object", "properties": {{{}}}, "additionalProperties": false}}"#,
        properties.join(",")
    );
    let (grammar, _) = compiler
        .compile(Source::JsonSchema(&wide), &Options::default())
        .expect("10,000 properties");
    assert!(accepts(&grammar, r#"{"p7": 1, "p9999": 2}"#));
    assert!(!accepts(&grammar, r#"{"p10000": 1}"#));

    let one_of = |depth: usize| {
        (0..depth).fold(r#"{"type": "integer"}"#.to_owned(), |inner, _| {
            format!(r#"{{"oneOf": [{inner}, {{"type": "string"}}]}}"#)
        })
    };
    // Each level takes the strings out of the one below, so they are in the language of every second depth.
    let (grammar, _) = compiler
        .compile(Source::JsonSchema(&one_of(16)), &Options::default())
        .expect("nested oneOf");
    assert!(accepts(&grammar, "1"));
    assert!(!accepts(&grammar, "\"a\""));
    let (grammar, _) = compiler
        .compile(Source::JsonSchema(&one_of(15)), &Options::default())
        .expect("nested oneOf");
    assert!(accepts(&grammar, "\"a\""));
}
