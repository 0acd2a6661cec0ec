//! `lexiform eval suite`: one draft of the official test suite of JSON Schema.
//!
//! The folder is a checkout of the suite: `tests/draft7/*.json`, each a list of schemas with tests, and
//! `remotes/`, which the suite's schemas refer to under `http://localhost:1234/`. These are passed to the
//! compiler by name; nothing is fetched.

use std::path::{Path, PathBuf};

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::ProblemKind;
use lexiform::schema::{Draft, Formats};
use lexiform::{Compiler, Options, Source};
use serde_json::Value;

use super::panics::{caught, quietly};
use super::python_json;
use super::report::judged::{Judged, Only, Words};
use super::report::{Findings, Publishing};
use super::verdict::{Data, Verdict, must_exist, progress};
use crate::failure::{EXIT_CODES, Failure, read_text};
use crate::input::source::{KeyOrder, Meaning};
use crate::input::tokenizer;

/// The arguments of `lexiform eval suite`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    data: Data,
    /// The draft: 4, 6, 7, 2019-09 or 2020-12
    #[arg(long, value_parser = ["4", "6", "7", "2019-09", "2020-12"])]
    draft: String,
    /// Also run the optional tests of `format`, which assert formats. In the required tests formats are
    /// annotations, as in the specification
    #[arg(long)]
    optional_format: bool,
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    pub(super) publishing: Publishing,
}

/// Judges every test of the draft.
///
/// # Errors
/// A file of the suite cannot be read.
pub(super) fn report(args: &Args) -> Result<Findings, Failure> {
    let data = args.data.path();
    let folder = data.join("tests").join(format!("draft{}", args.draft));
    let required = json_files(&must_exist(folder.clone(), "the tests of this draft")?)?;
    let mut files: Vec<(PathBuf, Formats)> = with(required, Formats::Annotate);
    if args.optional_format {
        let folder = must_exist(folder.join("optional/format"), "the optional tests of format")?;
        files.extend(with(json_files(&folder)?, Formats::Assert));
    }
    let mut options = options(&args.draft, remotes(&data.join("remotes"))?);
    let mut judged = Judged::new(&args.only);
    let bar = progress(files.len());
    quietly(|| {
        for (file, formats) in &files {
            options.schema.formats = *formats;
            judge_file(file, &options, &mut judged)?;
            bar.inc(1);
        }
        Ok::<(), Failure>(())
    })?;
    bar.finish_and_clear();
    let words = Words {
        kind: "suite",
        title: format!("JSON Schema test suite, draft {}", args.draft),
        table: "Tests by file",
        group: "file",
        cases: "tests",
        texts: "instances",
        wrong: ["valid_rejected", "invalid_accepted"],
    };
    judged.findings(data, words)
}

fn with(files: Vec<PathBuf>, formats: Formats) -> Vec<(PathBuf, Formats)> {
    files.into_iter().map(|file| (file, formats)).collect()
}

/// Returns the options of the specification: keys in any order and any spelling of a string. Without
/// `$schema`, a schema belongs to the draft of its folder.
fn options(draft: &str, documents: Vec<(String, String)>) -> Options {
    let meaning = Meaning {
        key_order: KeyOrder::Any,
        ..Meaning::default()
    };
    let mut options = meaning.options_for_judging();
    options.schema.draft = Some(match draft {
        "4" => Draft::D4,
        "6" => Draft::D6,
        "7" => Draft::D7,
        "2019-09" => Draft::D2019,
        _ => Draft::D2020,
    });
    options.schema.documents = documents;
    options
}

/// The URI under which the suite's own server would serve `remotes/`.
const REMOTES: &str = "http://localhost:1234/";

/// Returns every JSON file under `remotes/`, with its URI.
fn remotes(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    let mut documents = Vec::new();
    let mut open = vec![(folder.to_owned(), REMOTES.to_owned())];
    while let Some((folder, uri)) = open.pop() {
        for path in entries(&folder)? {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                open.push((path, format!("{uri}{name}/")));
            } else if path.extension().is_some_and(|it| it == "json") {
                documents.push((format!("{uri}{name}"), read_text(&path)?));
            }
        }
    }
    documents.sort();
    Ok(documents)
}

/// Returns the JSON files directly in a folder.
pub(super) fn json_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_json = |path: &PathBuf| path.extension().is_some_and(|it| it == "json");
    Ok(entries(folder)?.into_iter().filter(is_json).collect())
}

/// Returns the entries of a folder, sorted by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |source| Failure::Read {
        path: folder.to_owned(),
        source,
    };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = entries
        .map(|entry| entry.map(|it| it.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

fn judge_file(path: &Path, options: &Options, judged: &mut Judged<'_>) -> Result<(), Failure> {
    let groups: Value = serde_json::from_str(&read_text(path)?)
        .map_err(|error| Failure::message(format!("{}: {error}", path.display())))?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let compiler = Compiler::new(tokenizer::bytes_only()?);
    for group in groups.as_array().map_or(&[][..], Vec::as_slice) {
        let tests = group["tests"].as_array().map_or(&[][..], Vec::as_slice);
        let schema = group["schema"].to_string();
        let compiled = caught(|| compiler.compile(Source::JsonSchema(&schema), options));
        let said = |value: &Value| {
            value["description"]
                .as_str()
                .unwrap_or("without a name")
                .to_owned()
        };
        for test in tests {
            let verdict = || match &compiled {
                Ok(Ok((grammar, _))) => judge(grammar, test),
                // A schema that nothing satisfies is refused with that finding, and every instance is
                // rejected.
                Ok(Err(error)) if is_unsatisfiable(error) => judge_nothing(test),
                Ok(Err(error)) => Verdict::DoesNotCompile(error.to_string()),
                Err(panic) => Verdict::DoesNotCompile(panic.clone()),
            };
            let name = format!("{file}: {}: {}", said(group), said(test));
            judged.judge(&file, name, verdict);
        }
    }
    Ok(())
}

fn is_unsatisfiable(error: &CompileError) -> bool {
    error
        .problems
        .iter()
        .all(|problem| problem.kind == ProblemKind::Unsatisfiable)
}

fn judge_nothing(test: &Value) -> Verdict {
    match test["valid"] == Value::Bool(true) {
        true => Verdict::Refused(String::new()),
        false => Verdict::Right,
    }
}

fn judge(grammar: &Grammar, test: &Value) -> Verdict {
    let valid = test["valid"] == Value::Bool(true);
    let text = python_json::dumps(&test["data"]);
    match (caught(|| belongs(grammar, &text)), valid) {
        (Ok(true), true) | (Ok(false), false) => Verdict::Right,
        (Ok(_), true) => Verdict::Refused(String::new()),
        (Ok(_), false) => Verdict::LetThrough(String::new()),
        (Err(panic), true) => Verdict::Refused(panic),
        (Err(panic), false) => Verdict::LetThrough(panic),
    }
}

/// Returns `true` if a whole text is in the language.
pub(super) fn belongs(grammar: &Grammar, text: &str) -> bool {
    grammar
        .step_bytes(grammar.start(), text.as_bytes())
        .is_some_and(|state| grammar.is_accepting(state))
}
