//! The figures of all arms, as JSON and as a table.

use std::fmt::Write as _;

use lexiform_engine::StateClass;
use serde_json::{Value, json};

use super::regions::RegionCounts;

/// The measurements of an arm.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) seconds: f64,
    /// The time that all threads of the process worked.
    pub(super) processor_seconds: f64,
    pub(super) passes: u64,
    pub(super) tokens: u64,
    pub(super) drafted: u64,
    pub(super) accepted: u64,
    pub(super) store_bytes: usize,
    pub(super) regions: RegionCounts,
    /// `true` if the texts are not those of their seeds.
    pub(super) has_own_texts: bool,
    /// The tokens of each answer.
    pub(super) texts: Vec<Vec<u32>>,
}

fn ratio(one: f64, other: f64) -> f64 {
    match other > 0.0 {
        true => one / other,
        false => 0.0,
    }
}

impl Figures {
    pub(super) fn tokens_a_second(&self) -> f64 {
        ratio(self.tokens as f64, self.seconds)
    }

    /// Returns the tokens per second of processor time.
    fn tokens_a_processor_second(&self) -> f64 {
        ratio(self.tokens as f64, self.processor_seconds)
    }

    pub(super) fn tokens_a_pass(&self) -> f64 {
        ratio(self.tokens as f64, self.passes as f64)
    }

    fn acceptance(&self) -> f64 {
        ratio(self.accepted as f64, self.drafted as f64)
    }

    /// Returns the share of the tokens of a region that were drafted and kept.
    pub(super) fn share(&self, region: StateClass) -> f64 {
        let (tokens, drafted) = self.regions.0[region as usize];
        ratio(drafted as f64, tokens as f64)
    }
}

/// The report over all arms.
pub(super) struct Report {
    answers: usize,
    temperature: f64,
    always: bool,
    tasks: usize,
    pub(super) arms: Vec<(&'static str, Figures)>,
}

impl Report {
    pub(super) fn new(answers: usize, temperature: f64, always: bool, tasks: usize) -> Self {
        Report {
            answers,
            temperature,
            always,
            tasks,
            arms: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, name: &'static str, figures: Figures) {
        self.arms.push((name, figures));
    }

    /// Returns the arms that did not write the same texts as the first one.
    pub(super) fn failures(&self) -> Vec<&'static str> {
        let Some((_, first)) = self.arms.first() else {
            return Vec::new();
        };
        let others = self
            .arms
            .iter()
            .filter(|(_, figures)| !figures.has_own_texts && figures.texts != first.texts);
        others.map(|(name, _)| *name).collect()
    }

    /// Returns `true` if all arms wrote the same texts.
    pub(super) fn is_same_text(&self) -> bool {
        self.failures().is_empty()
    }

    /// Describes what was measured, in a line.
    pub(super) fn subject(&self) -> String {
        format!(
            "{} tasks, {} at a time, temperature {}, {}",
            self.tasks,
            self.answers,
            self.temperature,
            match self.always {
                true => "all drafts fed",
                false => "as many drafts fed as pay",
            }
        )
    }

    /// Returns a figure of an arm relative to the arm without drafts; `None` if that arm was not measured.
    fn beside_none(&self, figures: &Figures, of: fn(&Figures) -> f64) -> Option<f64> {
        let (_, none) = self.arms.iter().find(|(name, _)| *name == "none")?;
        Some(ratio(of(figures), of(none)))
    }

    pub(super) fn json(&self) -> Value {
        let arm = |(name, figures): &(&str, Figures)| {
            let regions: serde_json::Map<String, Value> = StateClass::ALL
                .iter()
                .map(|&(region, label)| {
                    let (tokens, drafted) = figures.regions.0[region as usize];
                    (label.to_owned(), json!({"tokens": tokens, "drafted": drafted}))
                })
                .collect();
            json!({
                "arm": name,
                "tokens": figures.tokens,
                "passes": figures.passes,
                "tokens_a_pass": figures.tokens_a_pass(),
                "tokens_a_second": figures.tokens_a_second(),
                "speedup": self.beside_none(figures, Figures::tokens_a_second),
                "processor_seconds": figures.processor_seconds,
                "processor_speedup": self.beside_none(figures, Figures::tokens_a_processor_second),
                "drafted": figures.drafted,
                "accepted": figures.accepted,
                "regions": regions,
                "store_bytes": figures.store_bytes,
            })
        };
        json!({
            "tasks": self.tasks,
            "answers": self.answers,
            "temperature": self.temperature,
            "all_drafts_fed": self.always,
            "failures": self.failures(),
            "arms": self.arms.iter().map(arm).collect::<Vec<_>>(),
        })
    }

    pub(super) fn table(&self) -> String {
        let mut table = format!("{}\n\n", self.subject());
        let _ = write!(
            table,
            "{:<16} {:>9} {:>8} {:>8} {:>8} {:>8}",
            "arm", "tokens/s", "", "work", "a pass", "kept"
        );
        for (_, label) in StateClass::ALL {
            let _ = write!(table, " {label:>9}");
        }
        table.push('\n');
        for (name, figures) in &self.arms {
            let times = |of| {
                let ratio = self.beside_none(figures, of);
                ratio.map_or(String::new(), |ratio| format!("{ratio:.2}x"))
            };
            let speedup = times(Figures::tokens_a_second);
            let work = times(Figures::tokens_a_processor_second);
            let _ = write!(
                table,
                "{name:<16} {:>9.0} {speedup:>8} {work:>8} {:>8.2} {:>7.0}%",
                figures.tokens_a_second(),
                figures.tokens_a_pass(),
                100.0 * figures.acceptance(),
            );
            for (region, _) in StateClass::ALL {
                let _ = write!(table, " {:>8.0}%", 100.0 * figures.share(region));
            }
            table.push('\n');
        }
        table.push_str(
            "\nwork: tokens for each second of processor time, beside none. kept: of the drafted tokens. structure to text: tokens of the answer that were drafted.\n",
        );
        if !self.is_same_text() {
            let _ = writeln!(
                table,
                "Other texts than the first: {}",
                self.failures().join(", ")
            );
        }
        table
    }
}
