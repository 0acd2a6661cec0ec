//! The report of a comparison: what its figures say, and its tables and plots.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::arena::Grown;
use super::run::{Finished, OURS};
use super::tally::Tally;
use crate::eval::verdict::Verdict;
use crate::report::{Failure, Made, Part, Report, Section, in_columns, shortened};

/// Everything that was found.
pub(super) struct Findings<'a> {
    /// The engines, Lexiform first.
    pub(super) engines: &'a [Finished],
    pub(super) schemas: usize,
    /// The bounds of an engine for one schema.
    pub(super) seconds: f64,
    pub(super) mebibytes: u64,
    /// The engines that could not be used, and why.
    pub(super) left_out: &'a BTreeMap<String, String>,
    pub(super) growth: &'a [Grown],
    /// The name of the tokenizer.
    pub(super) vocabulary: &'a str,
    /// Writes the command that repeats one schema with one engine.
    pub(super) repeat: &'a dyn Fn(&str, &str) -> String,
}

impl Findings<'_> {
    /// Writes the report. The machine and the sums of the data are for the one who publishes it.
    pub(super) fn report(&self) -> Report {
        Report {
            kind: "compare".to_owned(),
            title: format!(
                "Engines side by side on {} schemas, with the tokens of {}",
                self.schemas, self.vocabulary
            ),
            made: Made {
                versions: self.versions(),
                ..Made::default()
            },
            answers: self.answers(),
            sections: self.sections(),
            failures: self.failures(),
            figures: self.figures(),
        }
    }

    fn versions(&self) -> Vec<(String, String)> {
        let versions = self.engines.iter();
        versions
            .map(|engine| (engine.name.clone(), engine.tally.loaded.version.clone()))
            .collect()
    }

    fn sections(&self) -> Vec<Section> {
        let section = |title: &str, parts: Vec<Part>| Section {
            title: title.to_owned(),
            parts,
        };
        let mut sections = vec![
            section(
                "What each engine gets right",
                vec![self.outcomes(), self.refusals(), self.by_keyword()],
            ),
            section(
                "Time",
                vec![self.distribution(), self.times(), self.ratios(), self.costs()],
            ),
            section("Masks bit by bit", self.dispute_parts()),
            section("Growth", self.growth_parts()),
        ];
        sections.retain(|section| !section.parts.is_empty());
        sections
    }

    fn failures(&self) -> Vec<Failure> {
        let failures = self.engines.iter().flat_map(|engine| {
            engine.tally.failures.iter().map(|(case, verdict)| {
                let (what, reason) = words(verdict);
                Failure {
                    case: case.clone(),
                    what: format!("{}: {what}", engine.name),
                    reason: shortened(reason, 300),
                    command: (self.repeat)(&engine.name, case),
                }
            })
        });
        failures.collect()
    }

    fn figures(&self) -> Map<String, Value> {
        let engines = self
            .engines
            .iter()
            .map(|engine| (engine.name.clone(), figures(&engine.tally)));
        let mut figures: Map<String, Value> = engines.collect();
        for grown in self.growth {
            let engines = grown
                .engines
                .iter()
                .map(|engine| (engine.name.clone(), figures_of(&engine.tally)));
            figures.insert(
                format!("{} tokens", grown.tokens),
                Value::Object(engines.collect()),
            );
        }
        figures
    }

    pub(super) fn others(&self) -> impl Iterator<Item = &Finished> {
        self.engines.iter().filter(|engine| engine.name != OURS)
    }
}

fn words(verdict: &Verdict) -> (&'static str, &str) {
    match verdict {
        Verdict::Right => ("right", ""),
        Verdict::DoesNotCompile(reason) => ("schema refused", reason),
        Verdict::Refused(reason) => ("valid instance refused", reason),
        Verdict::LetThrough(reason) => ("invalid instance accepted", reason),
    }
}

fn figures(tally: &Tally) -> Value {
    let mut figures = figures_of(tally);
    figures["two_threads"] = json!(tally.two_threads());
    figures["masks"] = json!({
        "compared": tally.disputes.masks,
        "different": tally.disputes.different,
    });
    figures
}

fn figures_of(tally: &Tally) -> Value {
    json!({
        "schemas": tally.all.asked,
        "right": tally.right,
        "refused": tally.all.refused,
        "out_of_bounds": tally.lost,
        "valid_refused": tally.all.narrow,
        "invalid_accepted": tally.all.wide,
        "compile_us": tally.times.compile.summary(),
        "first_mask_us": tally.times.first.summary(),
        "mask_cold_us": tally.times.cold.summary(),
        "mask_warm_us": tally.times.warm.summary(),
        "vocabulary_us": tally.loaded.once_us.round(),
        "vocabulary_bytes": tally.loaded.resident,
        "resident_bytes": tally.resident,
        "clock_us": tally.loaded.clock_us,
        "call_us": tally.loaded.call_us,
    })
}

/// Returns the answers and the table of times, for a terminal.
pub(super) fn in_short(report: &Report) -> String {
    let mut text = format!("{}\n\n", report.title);
    for answer in &report.answers {
        text += &format!("{}\n    {}\n", answer.question, answer.answer);
    }
    for section in report.sections.iter().take(2) {
        let tables = section.parts.iter().filter_map(|part| match part {
            Part::Table(table) => Some(table),
            _ => None,
        });
        tables.take(2).for_each(|table| text += &in_columns(table));
    }
    text
}
