//! The report of an evaluation: its figures, the failed cases, and where it is written.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::verdict::Failures;
use crate::failure::{Code, Failure, Outcome};
use crate::shown::output::Output;
use crate::shown::paint::{bad, dim, good};

/// The most failures shown in the text output; `--json` and `--out` have all.
const LISTED_FAILURES: usize = 50;

/// The destinations of the report.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Publishing {
    #[command(flatten)]
    output: Output,
    /// Write the report as JSON to this file too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The results on a collection.
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
    /// Returns `true` if the answer is printed as JSON.
    pub(super) fn is_json(&self) -> bool {
        self.output.json
    }
}

impl Report {
    /// Creates a report from an object of figures.
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
    /// The report cannot be printed or written.
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

/// Formats a figure, or the figures of one measurement, as a line. Tables within the report are for programs.
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
