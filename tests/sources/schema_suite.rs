//! The official test suite of JSON Schema, with a ratchet.
//!
//! The failures are listed in `tests/data/ratchet/schema_suite.json` by draft, file, group and test, with the
//! reason: a new failure fails the test, and so does an entry that is no longer true. For the required tests,
//! formats are annotations, as in the specification; for the optional ones, they are asserted. A schema that
//! nothing satisfies is refused with that finding, which is correct if the suite says that every instance is
//! invalid.

use crate::ratchet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::ProblemKind;
use lexiform::schema::{Draft, Formats, KeyOrder};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform_syntax::regex::Escapes;
use ratchet::{ACCEPTED_WRONGLY, Ratchet};
use serde_json::Value;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".data/json-schema-test-suite")
}

fn compiler() -> Compiler {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let bytes = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte]));
    let tokens: Vec<_> = std::iter::once(eos).chain(bytes).collect();
    Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")))
}

/// The JSON files of a folder and those below it, by their path within it, in order.
fn json_files(folder: &Path, deep: bool) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut open = vec![(folder.to_owned(), String::new())];
    while let Some((folder, name)) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the suite") {
            let path = entry.expect("an entry").path();
            let own = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() && deep {
                open.push((path, format!("{name}{own}/")));
            } else if own.ends_with(".json") {
                let text = std::fs::read_to_string(&path).expect("a file of the suite");
                files.push((format!("{name}{own}"), text));
            }
        }
    }
    files.sort();
    files
}

fn options(draft: Draft, formats: Formats) -> Options {
    let remotes = json_files(&data().join("remotes"), true);
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    options.schema.escapes = Escapes::Any;
    options.schema.draft = Some(draft);
    options.schema.formats = formats;
    options.schema.documents = remotes
        .into_iter()
        .map(|(name, text)| (format!("http://localhost:1234/{name}"), text))
        .collect();
    options
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    grammar
        .step_bytes(grammar.start(), text.as_bytes())
        .is_some_and(|state| grammar.is_accepting(state))
}

/// What a schema allows: a grammar, nothing at all, or a refusal.
enum Compiled {
    Grammar(Grammar),
    Nothing,
    Refused(String),
}

fn compile(compiler: &Compiler, schema: &Value, options: &Options) -> Compiled {
    let is_empty = |error: &CompileError| {
        error
            .problems
            .iter()
            .all(|problem| problem.kind == ProblemKind::Unsatisfiable)
    };
    match compiler.compile(Source::JsonSchema(&schema.to_string()), options) {
        Ok((grammar, _)) => Compiled::Grammar(grammar),
        Err(error) if is_empty(&error) => Compiled::Nothing,
        Err(error) => Compiled::Refused(format!("refused: {}", error.problems[0].message)),
    }
}

fn judge(compiled: &Compiled, test: &Value) -> Result<(), String> {
    let accepted = match compiled {
        Compiled::Grammar(grammar) => accepts(grammar, &test["data"].to_string()),
        Compiled::Nothing => false,
        Compiled::Refused(reason) => return Err(reason.clone()),
    };
    match (accepted, test["valid"] == Value::Bool(true)) {
        (true, false) => Err(ACCEPTED_WRONGLY.into()),
        (false, true) => Err("rejected wrongly".into()),
        _ => Ok(()),
    }
}

/// The reasons for failures: the beginning of the file and group, a part of the test's name, and the reason.
const REASONS: [(&str, &str, &str); 1] = [(
    "ecmascript-regex.json",
    "named backreference",
    "that a group has the name that is referred to is not regular",
)];

/// The outcome of a case with the reason why it fails; a failure without one fails the test.
fn with_reason(name: &str, outcome: Result<(), String>) -> Result<(), String> {
    let Err(failure) = outcome else { return Ok(()) };
    let known = REASONS
        .iter()
        .find(|(group, test, _)| name.starts_with(group) && name.contains(test));
    let (_, _, reason) =
        known.unwrap_or_else(|| panic!("no reason is given why this fails: {name}: {failure}"));
    Err(format!("{failure}: {reason}"))
}

fn run(section: &'static str, folder: &str, draft: Draft, formats: Formats) {
    let folder = data().join("tests").join(folder);
    if !folder.is_dir() {
        println!("skipped: {section}: .data/json-schema-test-suite is not there");
        return;
    }
    let (compiler, options) = (compiler(), options(draft, formats));
    let mut ratchet = Ratchet::open("schema_suite.json", section);
    for (file, text) in json_files(&folder, false) {
        let groups: Vec<Value> = serde_json::from_str(&text).expect("a file of the suite is a list");
        for group in &groups {
            let compiled = compile(&compiler, &group["schema"], &options);
            for test in group["tests"].as_array().into_iter().flatten() {
                let name = format!("{file} / {} / {}", group["description"], test["description"]);
                ratchet.note(&name, with_reason(&name, judge(&compiled, test)));
            }
        }
    }
    ratchet.close();
}

#[test]
fn required_tests_of_draft_4() {
    run("draft 4", "draft4", Draft::D4, Formats::Annotate);
}

#[test]
fn required_tests_of_draft_7() {
    run("draft 7", "draft7", Draft::D7, Formats::Annotate);
}

#[test]
fn required_tests_of_2020_12() {
    run("2020-12", "draft2020-12", Draft::D2020, Formats::Annotate);
}

#[test]
fn optional_tests_of_formats_of_2020_12() {
    let folder = "draft2020-12/optional/format";
    run("2020-12, formats", folder, Draft::D2020, Formats::Assert);
}
