//! Where the report of an evaluation is printed and written.

pub(super) mod judged;

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::verdict::Failures;
use crate::failure::{Failure, Outcome};
use crate::report::{CommandLine, Destinations, FLAGS, Report, write};
use crate::shown::output::Output;
use crate::shown::paint::{bad, dim, good};

/// The most failures shown in the text output; `--json` and `--out` have all.
const LISTED_FAILURES: usize = 50;

/// The destinations of the report.
#[derive(Clone, Debug, clap::Args)]
pub struct Publishing {
    #[command(flatten)]
    output: Output,
    /// Write what --json prints to this file too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    destinations: Destinations,
}

/// The flags of [`Publishing`] that have values, and those that have none: they do not change what is
/// measured.
fn flags() -> ([&'static str; 6], [&'static str; 3]) {
    let [html, markdown, report, baseline, tolerance] = FLAGS;
    (
        ["--out", html, markdown, report, baseline, tolerance],
        ["--json", "--quiet", "-q"],
    )
}

/// Returns the command line that measures the same again, and writes no files.
pub(super) fn again() -> CommandLine {
    let (with_values, switches) = flags();
    CommandLine::of_this_run()
        .without(&with_values)
        .without_switches(&switches)
}

impl Publishing {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }

    /// Checks before a long run that the baseline can be read.
    ///
    /// # Errors
    /// It cannot be read, or is no report.
    pub fn check(&self) -> Result<(), Failure> {
        self.destinations.check()
    }

    /// Prints a report in the requested format, and writes it to the files that were named. `json` is what
    /// `--json` and `--out` show of it.
    ///
    /// The exit code says whether a case failed or, with a baseline, whether anything got worse.
    ///
    /// # Errors
    /// The report cannot be printed or written, or the baseline is of no use.
    pub fn publish(&self, report: Report, json: &Value) -> Outcome {
        if let Some(path) = &self.out {
            write(path, &format!("{json:#}\n"))?;
        }
        let text = text(&report);
        self.destinations.publish(report, self.output, json, &text)
    }
}

/// The results on a collection whose cases are judged.
pub(super) struct Findings {
    /// The report without its failures. Its figures are those of the stable JSON.
    pub(super) report: Report,
    pub(super) failures: Failures,
}

impl Findings {
    /// Prints the findings, and writes them to the files that were named.
    ///
    /// # Errors
    /// They cannot be printed or written.
    pub(super) fn publish(self, publishing: &Publishing) -> Outcome {
        let Findings { mut report, failures } = self;
        let mut json: Map<String, Value> = report.figures.clone();
        json.insert("failures".to_owned(), failures.json());
        report.failures = failures.into_report();
        publishing.publish(report, &Value::Object(json))
    }
}

fn text(report: &Report) -> String {
    let lines = report.figures.iter().map(|(name, value)| line(name, value));
    let mut text: String = lines.collect();
    if report.failures.is_empty() {
        return text + &good("nothing failed") + "\n";
    }
    text += &format!("{}\n", bad(format!("{} failed", report.failures.len())));
    text.extend(report.failures.iter().take(LISTED_FAILURES).map(|failure| {
        let reason = failure.reason.replace('\n', "; ");
        let gap = if reason.is_empty() { "" } else { ": " };
        format!("  {}: {}{gap}{reason}\n", failure.case, failure.what)
    }));
    let more = report.failures.len().saturating_sub(LISTED_FAILURES);
    if more > 0 {
        text += &format!(
            "  {}\n",
            dim(format!("and {more} more; --json and --out FILE have all"))
        );
    }
    text
}

/// Formats a figure, or the figures of one measurement, as a line. Tables within the report are for
/// programs.
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
