//! `lexiform eval`: how right and how fast the compiler and the masks are, on collections that people compare
//! engines by.
//!
//! ```text
//!   maskbench   schemas with instances, walked token by token    ─┐
//!   suite       the official test suite of JSON Schema            ├─► one JSON object on standard output
//!   cases       grammars with texts to accept and to reject      ─┘
//! ```
//!
//! The form of the reports is fixed: figures of one version are compared with those of another.

pub mod cases;
pub mod clock;
pub mod figures;
pub mod maskbench;
pub mod panics;
pub mod python_json;
pub mod suite;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use super::{Failure, Outcome};

/// The arguments of `lexiform eval`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    collection: Collection,
}

#[derive(Debug, Subcommand)]
enum Collection {
    /// Schemas with instances (MaskBench): each is walked token by token, with a mask before every token.
    Maskbench(maskbench::Args),
    /// The official JSON Schema test suite.
    Suite(suite::Args),
    /// Grammars, regular expressions or schemas with texts to accept and to reject.
    Cases(cases::Args),
}

/// Runs `lexiform eval`.
///
/// # Errors
/// The data or the tokenizer cannot be read, or the report cannot be written.
pub fn run(args: Args) -> Outcome {
    let (report, file) = match &args.collection {
        Collection::Maskbench(args) => (maskbench::report(args)?, &args.json),
        Collection::Suite(args) => (suite::report(args)?, &args.json),
        Collection::Cases(args) => (cases::report(args)?, &args.json),
    };
    publish(&report, file.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

fn publish(report: &Value, file: Option<&Path>) -> Result<(), Failure> {
    println!("{report:#}");
    let Some(path) = file else { return Ok(()) };
    std::fs::write(path, format!("{report:#}\n")).map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}

/// A progress bar on standard error; nothing where that is no terminal.
fn progress(total: usize) -> ProgressBar {
    let bar = ProgressBar::new(total as u64);
    match ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A line of a JSONL file that is not JSON ends the run: a report on half a collection would look like a whole one.
fn parse_line(path: &Path, line_number: usize, line: &str) -> Result<Value, Failure> {
    serde_json::from_str(line)
        .map_err(|error| Failure::message(format!("{}, line {line_number}: {error}", path.display())))
}

/// How a schema, an instance or a text fared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Right,
    /// The source did not compile, for this reason.
    DoesNotCompile(String),
    /// Something valid was refused.
    Refused(String),
    /// Something invalid was let through.
    LetThrough(String),
}

/// How many of each.
#[derive(Clone, Debug, Default)]
struct Counts {
    all: u64,
    right: u64,
    does_not_compile: u64,
    refused: u64,
    let_through: u64,
}

impl Counts {
    fn add(&mut self, verdict: &Verdict, times: u64) {
        self.all += times;
        match verdict {
            Verdict::Right => self.right += times,
            Verdict::DoesNotCompile(_) => self.does_not_compile += times,
            Verdict::Refused(_) => self.refused += times,
            Verdict::LetThrough(_) => self.let_through += times,
        }
    }
}

/// Where the data of a collection lies, when it is a folder: a message that names what was looked for.
fn must_exist(path: PathBuf, what: &str) -> Result<PathBuf, Failure> {
    if path.exists() {
        return Ok(path);
    }
    Err(Failure::message(format!(
        "{} is not there; expected {what}",
        path.display()
    )))
}
