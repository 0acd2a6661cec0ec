//! Verdicts on the cases of a collection, their counts, the list of failed cases, and helpers to read the
//! collections.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::report::{self, Answer, CommandLine, Mood, Table, count};

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

/// A case that failed.
#[derive(Clone, Debug)]
struct Failed {
    name: String,
    verdict: Verdict,
    /// The place of the failure, with what is there. May be empty.
    place: String,
    /// A command that shows it again.
    command: String,
}

/// The failed cases.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures(Vec<Failed>);

impl Failures {
    /// Records a case, unless it is right. With `--only` and its name, the command shows it again.
    pub(super) fn note(&mut self, name: String, verdict: &Verdict, command: &CommandLine) {
        let again = |name: &str| command.clone().with("--only", name).to_string();
        self.note_at(String::new(), || name, verdict, again);
    }

    /// Records a case with its place, unless it is right.
    pub(super) fn note_at(
        &mut self,
        place: String,
        name: impl FnOnce() -> String,
        verdict: &Verdict,
        command: impl FnOnce(&str) -> String,
    ) {
        if *verdict != Verdict::Right {
            let name = name();
            self.0.push(Failed {
                command: command(&name),
                name,
                verdict: verdict.clone(),
                place,
            });
        }
    }

    /// Returns the failures in the stable JSON of figures.
    pub(super) fn json(&self) -> Value {
        let failures = self.0.iter().filter_map(|failed| {
            let (what, _, reason) = failed.verdict.failure()?;
            Some(json!({"name": failed.name, "what": what, "reason": reason}))
        });
        failures.collect()
    }

    /// Returns the failures as a report has them. A place says more than the kind of failure, and a reason
    /// that only repeats that kind is left out.
    pub(super) fn into_report(self) -> Vec<report::Failure> {
        let failures = self.0.into_iter().filter_map(|failed| {
            let (_, what, reason) = failed.verdict.failure()?;
            Some(report::Failure {
                reason: match failed.place.is_empty() {
                    true => reason.to_owned(),
                    false => failed.place.clone(),
                },
                case: failed.name.clone(),
                what: what.to_owned(),
                command: failed.command.clone(),
            })
        });
        failures.collect()
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

impl Counts {
    /// Answers what a reader asks first. `cases` and `texts` name what is counted, in the plural.
    pub(super) fn answers(&self, cases: &str, texts: &str) -> Vec<Answer> {
        let all = count(self.all as usize);
        let answer = |question: String, times: u64, none: &str, some: String| Answer {
            question,
            answer: if times == 0 { none.to_owned() } else { some },
            mood: if times == 0 { Mood::Good } else { Mood::Bad },
        };
        let share = |times: u64| format!("{} of {all} {cases}", count(times as usize));
        vec![
            answer(
                format!("How many {cases} are right?"),
                self.all - self.right,
                &format!("All {all}."),
                format!("{} ({}).", share(self.right), percent(self.right, self.all)),
            ),
            answer(
                format!("Does it accept invalid {texts}?"),
                self.let_through,
                "Never.",
                format!("In {}.", share(self.let_through)),
            ),
            answer(
                format!("Does it refuse valid {texts}?"),
                self.refused,
                "Never.",
                format!("In {}.", share(self.refused)),
            ),
            answer(
                "What does not compile?".to_owned(),
                self.does_not_compile,
                "Everything compiles.",
                format!("{}.", share(self.does_not_compile)),
            ),
        ]
    }
}

/// Returns a table of counts, a row for each group.
pub(super) fn coverage<'a>(
    title: &str,
    group: &str,
    cases: &str,
    groups: impl Iterator<Item = (&'a String, &'a Counts)>,
) -> Table {
    let columns = [
        group,
        cases,
        "right",
        "",
        "do not compile",
        "refuse valid",
        "accept invalid",
    ];
    let cell = |times: u64| count(times as usize);
    let rows = groups.map(|(name, counts)| {
        vec![
            name.clone(),
            cell(counts.all),
            cell(counts.right),
            percent(counts.right, counts.all),
            cell(counts.does_not_compile),
            cell(counts.refused),
            cell(counts.let_through),
        ]
    });
    Table {
        title: title.to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        note: String::new(),
    }
}

/// Writes a share in percent with one decimal, rounded down: only what is complete is 100%.
fn percent(part: u64, all: u64) -> String {
    match all {
        0 => "–".to_owned(),
        all => {
            let tenths = 1000 * part / all;
            format!("{}.{}%", tenths / 10, tenths % 10)
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
