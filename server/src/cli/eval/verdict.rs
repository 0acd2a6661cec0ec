//! Verdicts on the cases of a collection and their counts, and what reads the collections.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::cli::failure::Failure;

/// A progress bar on standard error; nothing where that is no terminal.
pub(super) fn progress(total: usize) -> ProgressBar {
    let bar = ProgressBar::new(total as u64);
    match ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A line of a JSONL file that is not JSON ends the run: a report on half a collection would look like a whole one.
pub(super) fn parse_line(path: &Path, line_number: usize, line: &str) -> Result<Value, Failure> {
    serde_json::from_str(line)
        .map_err(|error| Failure::message(format!("{}, line {line_number}: {error}", path.display())))
}

/// How a schema, an instance or a text fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
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
pub(super) struct Counts {
    pub(super) all: u64,
    pub(super) right: u64,
    pub(super) does_not_compile: u64,
    pub(super) refused: u64,
    pub(super) let_through: u64,
}

impl Counts {
    pub(super) fn add(&mut self, verdict: &Verdict, times: u64) {
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
pub(super) fn must_exist(path: PathBuf, what: &str) -> Result<PathBuf, Failure> {
    if path.exists() {
        return Ok(path);
    }
    Err(Failure::message(format!(
        "{} is not there; expected {what}",
        path.display()
    )))
}
