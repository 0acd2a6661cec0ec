//! The cases of a collection that is judged case by case: which are judged, their verdicts by group, and the
//! report on them.

use std::path::Path;

use serde_json::json;

use super::{Findings, again};
use crate::eval::verdict::{Counts, Failures, Verdict, coverage};
use crate::failure::Failure;
use crate::report::{CommandLine, Made, Part, Report, Section};

/// The cases that are judged; all of them if none is named.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Only {
    /// Only the case of this name, as the list of failures shows it; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

impl Only {
    /// Returns `true` if the case of this name is judged.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// # Errors
    /// No case has one of the names, so that a report on none would look like a good one.
    fn check(&self, judged: u64) -> Result<(), Failure> {
        if judged > 0 || self.only.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = self.only.iter().map(|name| format!("{name:?}")).collect();
        let message = format!("no case has the name {}", names.join(" or "));
        Err(Failure::message(message))
    }
}

/// The words of a report on one kind of collection.
pub(crate) struct Words {
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    /// The title of the table.
    pub(crate) table: &'static str,
    /// A group of cases, in the singular.
    pub(crate) group: &'static str,
    /// The cases, in the plural.
    pub(crate) cases: &'static str,
    /// What is accepted or rejected, in the plural.
    pub(crate) texts: &'static str,
    /// The names of the figures of what was refused or let through by mistake.
    pub(crate) wrong: [&'static str; 2],
}

/// The verdicts so far.
pub(crate) struct Judged<'a> {
    only: &'a Only,
    counts: Counts,
    /// The counts of each group, in the order of the collection.
    groups: Vec<(String, Counts)>,
    failures: Failures,
    /// The command that judges the collection again.
    command: CommandLine,
}

impl<'a> Judged<'a> {
    pub(crate) fn new(only: &'a Only) -> Self {
        Self {
            only,
            counts: Counts::default(),
            groups: Vec::new(),
            failures: Failures::default(),
            command: again().without(&["--only"]),
        }
    }

    /// Judges a case of the group, if it was asked for. The cases of a group follow each other.
    pub(crate) fn judge(&mut self, group: &str, name: String, verdict: impl FnOnce() -> Verdict) {
        if !self.only.has(&name) {
            return;
        }
        let verdict = verdict();
        if self.groups.last().is_none_or(|(last, _)| last != group) {
            self.groups.push((group.to_owned(), Counts::default()));
        }
        let of_group = self.groups.last_mut().map(|(_, counts)| counts);
        for counts in of_group.into_iter().chain([&mut self.counts]) {
            counts.add(&verdict, 1);
        }
        self.failures.note(name, &verdict, &self.command);
    }

    /// Returns the report on what was judged.
    ///
    /// # Errors
    /// No case has a name that was asked for, or the data cannot be read for its sum.
    pub(crate) fn findings(self, data: &Path, words: Words) -> Result<Findings, Failure> {
        let counts = &self.counts;
        self.only.check(counts.all)?;
        let [refused, let_through] = words.wrong;
        let figures = json!({
            "cases": counts.all,
            "right": counts.right,
            "compile_errors": counts.does_not_compile,
            refused: counts.refused,
            let_through: counts.let_through,
        });
        let rows = self.groups.iter().map(|(name, counts)| (name, counts));
        let table = coverage(words.table, words.group, words.cases, rows);
        let report = Report {
            kind: words.kind.to_owned(),
            title: words.title,
            made: Made::here().read(data)?,
            answers: counts.answers(words.cases, words.texts),
            sections: vec![Section {
                title: "Coverage".to_owned(),
                parts: vec![Part::Table(table)],
            }],
            figures: figures.as_object().cloned().unwrap_or_default(),
            ..Report::default()
        };
        Ok(Findings {
            report,
            failures: self.failures,
        })
    }
}
