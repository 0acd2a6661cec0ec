//! Verdicts on the cases of a collection, their counts, the list of failed cases, and helpers to read the
//! collections.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Creates a progress bar on standard error; hidden if that is no terminal.
pub(super) fn progress(total: usize) -> ProgressBar {
    let bar = ProgressBar::new(total as u64);
    match ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Parses a line of a JSONL file. A line that is not JSON ends the run: a report on half a collection would
/// look like one on all of it.
pub(super) fn parse_line(path: &Path, line_number: usize, line: &str) -> Result<Value, Failure> {
    serde_json::from_str(line)
        .map_err(|error| Failure::message(format!("{}, line {line_number}: {error}", path.display())))
}

/// The verdict on a schema, an instance or a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    /// The source did not compile, for this reason.
    DoesNotCompile(String),
    /// A valid instance or text was refused.
    Refused(String),
    /// An invalid instance or text was let through.
    LetThrough(String),
}

impl Verdict {
    /// Returns the kind of failure, for programs and for people, and the reason.
    fn failure(&self) -> Option<(&'static str, &'static str, &str)> {
        match self {
            Verdict::Right => None,
            Verdict::DoesNotCompile(reason) => Some(("compile_error", "does not compile", reason.as_str())),
            Verdict::Refused(reason) => Some(("rejected_wrongly", "rejected wrongly", reason.as_str())),
            Verdict::LetThrough(reason) => Some(("accepted_wrongly", "accepted wrongly", reason.as_str())),
        }
    }
}

/// The failed cases, each with its name and verdict.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures(Vec<(String, Verdict)>);

impl Failures {
    /// Records a case, unless it is right.
    pub(super) fn note(&mut self, name: impl FnOnce() -> String, verdict: &Verdict) {
        if *verdict != Verdict::Right {
            self.0.push((name(), verdict.clone()));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn json(&self) -> Value {
        let failures = self.0.iter().filter_map(|(name, verdict)| {
            let (what, _, reason) = verdict.failure()?;
            Some(json!({"name": name, "what": what, "reason": reason}))
        });
        failures.collect()
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(name, verdict)| {
            let (_, what, reason) = verdict.failure()?;
            let reason = reason.replace('\n', "; ");
            Some(match reason.is_empty() {
                true => format!("{name}: {what}"),
                false => format!("{name}: {what}: {reason}"),
            })
        })
    }
}

/// The location of a collection.
#[derive(Clone, Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct Data {
    /// The collection
    #[arg(value_name = "DATA")]
    place: Option<PathBuf>,
    /// The collection, given as a flag
    #[arg(long, value_name = "DATA")]
    data: Option<PathBuf>,
}

impl Data {
    pub(super) fn path(&self) -> &Path {
        let path = self.place.as_deref().or(self.data.as_deref());
        path.unwrap_or_else(|| Path::new("."))
    }
}

/// The number of cases with each verdict.
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

/// Returns the path if it exists; fails with a message that names what was expected there.
pub(super) fn must_exist(path: PathBuf, what: &str) -> Result<PathBuf, Failure> {
    if path.exists() {
        return Ok(path);
    }
    Err(Failure::message(format!(
        "{} is not there; expected {what}",
        path.display()
    )))
}
