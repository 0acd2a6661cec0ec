//! The report of an evaluation: its figures, the cases that failed, and where it goes.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::verdict::Failures;
use crate::failure::{Code, Failure, Outcome};
use crate::shown::output::Output;
use crate::shown::paint::{bad, dim, good};

/// How many failures people are shown; `--json` and `--out` have all.
const LISTED_FAILURES: usize = 50;

/// Where the report goes.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Publishing {
    #[command(flatten)]
    output: Output,
    /// Write the report as JSON to this file too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What was found in a collection.
pub(super) struct Report {
    /// The counts and the figures.
    figures: Map<String, Value>,
    failures: Failures,
}

fn write(report: &Value, path: &Path) -> Result<(), Failure> {
    std::fs::write(path, format!("{report:#}\n")).map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}

impl Publishing {
    /// Whether the answer is JSON.
    pub(super) fn is_json(&self) -> bool {
        self.output.json
    }
}

impl Report {
    /// From an object of figures.
    pub(super) fn new(figures: Value, failures: Failures) -> Self {
        let Value::Object(figures) = figures else {
            return Self {
                figures: Map::new(),
                failures,
            };
        };
        Self { figures, failures }
    }

    /// Prints the report, and writes it to the file that was named.
    ///
    /// # Errors
    /// It cannot be printed or written.
    pub(super) fn publish(&self, publishing: &Publishing) -> Outcome {
        if let Some(path) = &publishing.out {
            write(&self.json(), path)?;
        }
        publishing
            .output
            .print(|| self.json(), || self.text(), String::new)?;
        Ok(match self.failures.is_empty() {
            true => Code::Fine,
            false => Code::No,
        })
    }

    fn json(&self) -> Value {
        let mut object = self.figures.clone();
        object.insert("failures".to_owned(), self.failures.json());
        Value::Object(object)
    }

    fn text(&self) -> String {
        let lines = self.figures.iter().map(|(name, value)| line(name, value));
        let mut text: String = lines.collect();
        if self.failures.is_empty() {
            return text + &good("nothing failed") + "\n";
        }
        text += &format!("{}\n", bad(format!("{} failed", self.failures.len())));
        text.extend(
            self.failures
                .lines()
                .take(LISTED_FAILURES)
                .map(|line| format!("  {line}\n")),
        );
        let more = self.failures.len().saturating_sub(LISTED_FAILURES);
        if more > 0 {
            text += &format!(
                "  {}\n",
                dim(format!("and {more} more; --json and --out FILE have all"))
            );
        }
        text
    }
}

/// A figure, or the figures of one measurement, a line. Tables within the report are for programs.
fn line(name: &str, value: &Value) -> String {
    match value {
        Value::Object(parts) if parts.values().all(|it| !it.is_object()) && parts.contains_key("p50") => {
            let parts: Vec<String> = parts
                .iter()
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            format!("{name:<18} {}\n", parts.join("  "))
        }
        Value::Object(_) => String::new(),
        value => format!("{name:<18} {value}\n"),
    }
}
