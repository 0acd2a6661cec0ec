//! The flags that say where a report is written, and with what it is compared.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::baseline::{Baseline, Comparison};
use super::model::Report;
use super::{markdown, page};
use crate::failure::{Code, Failure, Outcome};
use crate::shown::output::{self, Output};

/// Where a report is written, and with what it is compared.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Report")]
pub struct Destinations {
    /// Write the report as a page with plots, which needs no other file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the report as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the whole report as JSON, with its tables, its plots and how it was made
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Compare with an earlier report as JSON: say what changed, and exit with 1 if anything got worse,
    /// whatever else failed in both
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// How much worse than in the baseline a time or a size may be
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = share)]
    tolerance: f64,
}

/// The flags of [`Destinations`] that have values.
pub const FLAGS: [&str; 5] = ["--html", "--markdown", "--report", "--baseline", "--tolerance"];

/// Reads a share: `10%`, or `10`.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage from 0% to 1000%".to_owned()),
    }
}

impl Destinations {
    /// Checks before a long run that the baseline can be read.
    ///
    /// # Errors
    /// It cannot be read, or is no report.
    pub fn check(&self) -> Result<(), Failure> {
        self.baseline
            .as_deref()
            .map_or(Ok(()), |path| Baseline::read(path).map(drop))
    }

    /// Prints a report in the requested format, with what changed since the baseline, and writes it to the
    /// files that were named. `json` is what `--json` prints of it, and `text` what people read.
    ///
    /// The exit code says whether a case failed or, with a baseline, whether anything got worse.
    ///
    /// # Errors
    /// The report cannot be printed or written, or the baseline is of no use.
    pub fn publish(&self, report: Report, output: Output, json: &Value, text: &str) -> Outcome {
        let failed = !report.failures.is_empty();
        self.publish_as(report, output, json, text, failed)
    }

    /// Like [`publish`](Self::publish), for reports in which a case may fail without the run having failed.
    ///
    /// # Errors
    /// The report cannot be printed or written, or the baseline is of no use.
    pub fn publish_as(
        &self,
        report: Report,
        output: Output,
        json: &Value,
        text: &str,
        failed: bool,
    ) -> Outcome {
        let compared = self.write(report)?;
        let changes = compared.as_ref().map(Comparison::text).unwrap_or_default();
        output.print(|| json.clone(), || format!("{text}{changes}"), String::new)?;
        if output.json {
            output::err(&changes);
        }
        Ok(
            match compared.map_or(failed, |comparison| comparison.is_regression()) {
                true => Code::No,
                false => Code::Fine,
            },
        )
    }

    /// Compares a report with the baseline, if there is one, and writes it to the files that were named. The
    /// files contain the comparison.
    ///
    /// # Errors
    /// The baseline is of no use, or a file cannot be written.
    fn write(&self, mut report: Report) -> Result<Option<Comparison>, Failure> {
        let compared = self.baseline.as_deref().map(|path| {
            let baseline = Baseline::read(path)?;
            baseline.compare(&report, self.tolerance)
        });
        let compared = compared.transpose()?;
        if let Some(comparison) = &compared {
            report.answers.push(comparison.answer());
            report.sections.insert(0, comparison.section());
        }
        let formats: [(&Option<PathBuf>, &dyn Fn() -> String); 3] = [
            (&self.html, &|| page::html(&report)),
            (&self.markdown, &|| markdown::text(&report)),
            (&self.report, &|| format!("{:#}\n", report.json())),
        ];
        for (path, text) in formats {
            if let Some(path) = path {
                write(path, &text())?;
            }
        }
        Ok(compared)
    }
}

/// Writes a text file; an error names the file.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_a_percentage() {
        assert_eq!(
            [share("10%"), share("2.5"), share("0 %")],
            [Ok(0.1), Ok(0.025), Ok(0.0)]
        );
        for wrong in ["", "%", "-1%", "ten", "NaN", "inf", "1e9%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
