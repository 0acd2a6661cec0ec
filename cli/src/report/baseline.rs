//! Compares a report with an earlier one.
//!
//! ```text
//!   a file ──► Baseline ─┐
//!            this report ┴─► Comparison: figures that differ, cases that failed anew
//! ```

mod direction;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

use super::model::{Answer, Mood, Part, Report, Section, Table};
use super::number::{count, number};
use crate::failure::{Failure, read_text};
use direction::{Direction, direction};

/// The cases that are named at most in a text; pages and JSON have more.
const NAMED: usize = 50;

/// An earlier report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// The evaluation; empty if the file does not say it.
    kind: String,
    /// The sums of its data, if the file has them.
    sums: Vec<String>,
    figures: BTreeMap<Vec<String>, Value>,
    failed: BTreeSet<String>,
}

impl Baseline {
    /// Reads a report, or the JSON of figures that `--json` and `--out` write.
    ///
    /// # Errors
    /// The file cannot be read, or is no report.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::message(format!("the baseline {}: {what}", path.display()));
        let report: Value =
            serde_json::from_str(&read_text(path)?).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(mut report) = report else {
            return Err(wrong("expected a JSON object, as --out writes it".to_owned()));
        };
        let failures = match report.remove("failures") {
            None => Vec::new(),
            Some(Value::Array(failures)) => failures,
            Some(_) => return Err(wrong("expected a list in /failures".to_owned())),
        };
        let kind = report.get("kind").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().to_owned();
        let data = report.get("made").and_then(|made| made["data"].as_array());
        let sums = data
            .into_iter()
            .flatten()
            .filter_map(|data| data["sha256"].as_str());
        let sums = sums.map(str::to_owned).collect();
        let figures = match report.remove("figures") {
            Some(Value::Object(figures)) => flat(&figures),
            Some(_) => return Err(wrong("expected an object in /figures".to_owned())),
            None => flat(&report),
        };
        if figures.is_empty() {
            return Err(wrong("it has no figures; expected a report as JSON".to_owned()));
        }
        let failed = failures.iter().map(|failure| {
            let names = [
                failure.as_str(),
                failure["case"].as_str(),
                failure["name"].as_str(),
            ];
            names
                .into_iter()
                .flatten()
                .next()
                .unwrap_or("without a name")
                .to_owned()
        });
        Ok(Baseline {
            kind,
            sums,
            figures,
            failed: failed.collect(),
        })
    }

    /// Compares a report with this one. Times and sizes may be worse by this share.
    ///
    /// # Errors
    /// The baseline is the report of another evaluation.
    pub fn compare(&self, report: &Report, tolerance: f64) -> Result<Comparison, Failure> {
        if !self.kind.is_empty() && self.kind != report.kind {
            let message = format!(
                "the baseline is a report of `{}`, and this one is of `{}`",
                self.kind, report.kind
            );
            return Err(Failure::message(message));
        }
        let now = flat(&report.figures);
        let names: BTreeSet<&Vec<String>> = self.figures.keys().chain(now.keys()).collect();
        let changes = names.into_iter().filter_map(|name| {
            let (before, now) = (self.figures.get(name), now.get(name));
            let verdict = verdict(direction(name), before, now, tolerance)?;
            Some(Change {
                figure: name.join("."),
                before: before.cloned(),
                now: now.cloned(),
                verdict,
            })
        });
        let failed: BTreeSet<&String> = report.failures.iter().map(|failure| &failure.case).collect();
        let own = report.made.data.iter().map(|data| &data.sha256);
        Ok(Comparison {
            changes: changes.collect(),
            new_failures: failed
                .iter()
                .filter(|case| !self.failed.contains(**case))
                .map(|case| (*case).clone())
                .collect(),
            mended: self
                .failed
                .iter()
                .filter(|case| !failed.contains(case))
                .cloned()
                .collect(),
            has_other_data: !self.sums.is_empty() && !own.eq(&self.sums),
        })
    }
}

/// The fields of a JSON of figures that say how it was made.
const ABOUT: [&str; 5] = ["command", "commit", "libtorch", "machine", "version"];

/// The fields that tell the parts of a list apart, such as the arms of a comparison.
const IDENTITY: [&str; 5] = ["name", "arm", "answers", "prompt_tokens", "temperature"];

/// Returns the figures by their paths. Null is no figure.
fn flat(figures: &Map<String, Value>) -> BTreeMap<Vec<String>, Value> {
    let mut flat = BTreeMap::new();
    let figures = figures.iter().filter(|(name, _)| !ABOUT.contains(&name.as_str()));
    let mut open: Vec<(Vec<String>, &Value)> = Vec::new();
    open.extend(figures.map(|(name, value)| (vec![name.clone()], value)));
    while let Some((path, value)) = open.pop() {
        let below = |name: String| [&path[..], &[name]].concat();
        match value {
            Value::Null => {}
            Value::Object(parts) => {
                open.extend(parts.iter().map(|(name, value)| (below(name.clone()), value)));
            }
            Value::Array(parts) => {
                let parts = parts.iter().enumerate();
                open.extend(parts.map(|(index, value)| (below(identity(index, value)), value)));
            }
            value => {
                flat.insert(path, value.clone());
            }
        }
    }
    flat
}

/// Returns what tells a part of a list from the others: its name, or else its index.
fn identity(index: usize, part: &Value) -> String {
    let fields = IDENTITY.iter().filter_map(|field| part.get(*field));
    let fields: Vec<String> = fields
        .map(|field| field.as_str().map_or_else(|| field.to_string(), str::to_owned))
        .collect();
    match fields.is_empty() {
        true => index.to_string(),
        false => fields.join("/"),
    }
}

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Worse,
    /// The baseline has it, and this report does not.
    Missing,
    Better,
    /// It differs, and nobody knows whether that is good, or it differs by less than the tolerance.
    Different,
    /// The baseline does not have it.
    New,
}

impl Verdict {
    /// All verdicts, in the order in which they are shown.
    const ALL: [(Verdict, &str); 5] = [
        (Verdict::Worse, "worse"),
        (Verdict::Missing, "missing"),
        (Verdict::Better, "better"),
        (Verdict::Different, "different"),
        (Verdict::New, "new"),
    ];
}

/// Judges a figure; `None` if nothing changed.
fn verdict(
    direction: Direction,
    before: Option<&Value>,
    now: Option<&Value>,
    tolerance: f64,
) -> Option<Verdict> {
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) => (before, now),
        (None, _) => return Some(Verdict::New),
        (Some(_), None) if direction == Direction::Tally => return Some(Verdict::Different),
        (Some(_), None) => return Some(Verdict::Missing),
    };
    let (Some(old), Some(new)) = (before.as_f64(), now.as_f64()) else {
        return (before != now).then_some(Verdict::Different);
    };
    let (is_less_better, allowed) = match direction {
        Direction::More => (false, 0.0),
        Direction::Less => (true, 0.0),
        Direction::MoreOrSo => (false, tolerance * old.abs()),
        Direction::LessOrSo => (true, tolerance * old.abs()),
        Direction::Unknown | Direction::Tally => return (old != new).then_some(Verdict::Different),
    };
    let worse_by = if is_less_better { new - old } else { old - new };
    if worse_by == 0.0 {
        return None;
    }
    Some(match worse_by {
        by if by > allowed => Verdict::Worse,
        by if -by > allowed => Verdict::Better,
        _ => Verdict::Different,
    })
}

/// A figure that differs.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    figure: String,
    before: Option<Value>,
    now: Option<Value>,
    verdict: Verdict,
}

impl Change {
    /// Returns the values before and now, and their difference in percent.
    fn cells(&self) -> [String; 3] {
        let shown = |value: &Option<Value>| match value {
            None => "–".to_owned(),
            Some(value) => value.as_f64().map_or_else(|| value.to_string(), number),
        };
        let float = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
        let percent = match (float(&self.before), float(&self.now)) {
            (Some(before), Some(now)) if before != 0.0 => format!("{:+.1}%", 100.0 * (now - before) / before),
            _ => String::new(),
        };
        [shown(&self.before), shown(&self.now), percent]
    }
}

/// The differences between a report and its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    changes: Vec<Change>,
    /// The cases that fail now and did not fail before.
    new_failures: Vec<String>,
    /// The cases that failed before and do not fail now.
    mended: Vec<String>,
    has_other_data: bool,
}

impl Comparison {
    /// Returns `true` if something got worse: a judged figure, a figure that is missing, or a case that
    /// fails now and did not before.
    pub fn is_regression(&self) -> bool {
        !self.new_failures.is_empty()
            || self
                .of(Verdict::Worse)
                .chain(self.of(Verdict::Missing))
                .next()
                .is_some()
    }

    fn of(&self, verdict: Verdict) -> impl Iterator<Item = &Change> {
        self.changes
            .iter()
            .filter(move |change| change.verdict == verdict)
    }

    /// Says in a sentence what got worse.
    fn summary(&self) -> String {
        let worse = self.of(Verdict::Worse).count();
        let missing = self.of(Verdict::Missing).count();
        let parts = [
            (worse, "figures are worse"),
            (missing, "figures are missing"),
            (self.new_failures.len(), "cases fail that did not fail before"),
        ];
        let parts = parts.iter().filter(|(times, _)| *times > 0);
        let parts: Vec<String> = parts
            .map(|(times, what)| format!("{}: {}", what, count(*times)))
            .collect();
        match parts.is_empty() {
            true => "Nothing got worse.".to_owned(),
            false => format!("{}.", capitalized(&parts.join("; "))),
        }
    }

    /// Describes all differences in lines.
    pub fn text(&self) -> String {
        let mut text = format!("Compared with the baseline: {}\n", self.summary());
        if self.has_other_data {
            text.push_str("The baseline is of other data, or of a part of it.\n");
        }
        for (verdict, word) in Verdict::ALL {
            for change in self.of(verdict) {
                let [before, now, percent] = change.cells();
                let line = format!("  {word:<10} {:<36} {before} → {now}  {percent}", change.figure);
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        for (cases, what) in [
            (&self.new_failures, "fails now"),
            (&self.mended, "does not fail any more"),
        ] {
            for case in cases.iter().take(NAMED) {
                let _ = writeln!(text, "  {what}: {case}");
            }
            if cases.len() > NAMED {
                let _ = writeln!(text, "  {what}: {} more", count(cases.len() - NAMED));
            }
        }
        text
    }

    /// Returns the answer for the first screen of a report.
    pub fn answer(&self) -> Answer {
        Answer {
            question: "Did anything get worse than in the baseline?".to_owned(),
            answer: self.summary(),
            mood: if self.is_regression() {
                Mood::Bad
            } else {
                Mood::Good
            },
        }
    }

    /// Returns the section of a report with all differences.
    pub fn section(&self) -> Section {
        let rows = Verdict::ALL.iter().flat_map(|(verdict, word)| {
            self.of(*verdict).map(|change| {
                let [before, now, percent] = change.cells();
                vec![change.figure.clone(), before, now, percent, (*word).to_owned()]
            })
        });
        let figures = Table {
            title: "Figures that differ".to_owned(),
            columns: ["figure", "baseline", "now", "", ""].map(str::to_owned).to_vec(),
            rows: rows.collect(),
            note: match self.has_other_data {
                true => "The baseline is of other data, or of a part of it.".to_owned(),
                false => String::new(),
            },
        };
        let cases = |title: &str, cases: &[String]| Table {
            title: title.to_owned(),
            columns: vec!["case".to_owned()],
            rows: cases.iter().map(|case| vec![case.clone()]).collect(),
            note: String::new(),
        };
        let tables = [
            figures,
            cases("Cases that fail now", &self.new_failures),
            cases("Cases that do not fail any more", &self.mended),
        ];
        let tables = tables.into_iter().filter(|table| !table.rows.is_empty());
        Section {
            title: "Compared with the baseline".to_owned(),
            parts: tables.map(Part::Table).collect(),
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
