//! Writes the report: what a reader asks first, the tables, the distributions, the failures, the figures.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::coverage::{Coverage, Share};
use super::item::{Arm, Item, Verdict};
use super::record::{Outcome, Record};
use super::tally::{self, Tally};
use super::wire::quoted;
use crate::report::{
    Answer, Bar, Chart, Failure, Made, Mood, Paragraph, Part, Report, Scale, Section, Series, Shape, Table,
};

/// A record with its item.
pub(super) type Pair<'a> = (&'a Item, &'a Record);

/// What distinguishes the groups of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The arms of one run.
    Arm,
    /// Endpoints, or the same one in several settings.
    Endpoint,
}

/// The records of a report that are shown under one label.
pub(super) struct Group<'a> {
    pub(super) tally: Tally,
    pub(super) pairs: Vec<Pair<'a>>,
    /// The command that asks for one item again, without the name of the item.
    pub(super) again: String,
}

impl<'a> Group<'a> {
    /// Sums up the records of a group.
    pub(super) fn new(label: &str, arm: Arm, pairs: Vec<Pair<'a>>, again: String) -> Self {
        Self {
            tally: Tally::of(label.to_owned(), arm, pairs.iter().copied()),
            pairs,
            again,
        }
    }

    fn failures(&self) -> impl Iterator<Item = Failure> {
        self.pairs.iter().filter_map(|(_, record)| failure(record, self))
    }

    /// Returns the name of an item in lists of failures.
    pub(super) fn case(&self, record: &Record) -> String {
        format!("{} ({})", record.name, self.tally.label)
    }
}

impl By {
    fn word(self) -> &'static str {
        match self {
            Self::Arm => "arm",
            Self::Endpoint => "endpoint",
        }
    }
}

/// Writes the report of a run, or of several.
pub(super) fn report(made: Made, title: String, by: By, groups: &[Group<'_>]) -> Report {
    let tallies: Vec<Tally> = groups.iter().map(|group| group.tally.clone()).collect();
    let tallies = &tallies[..];
    Report {
        kind: "generate".to_owned(),
        title,
        made,
        answers: answers(tallies),
        sections: vec![
            coverage_section(by, tallies),
            times_section(tallies),
            keywords_section(tallies),
        ],
        failures: groups.iter().flat_map(Group::failures).collect(),
        figures: figures(tallies),
    }
}

/// Returns the report of a record that is not a valid answer.
fn failure(record: &Record, group: &Group<'_>) -> Option<Failure> {
    let (what, reason) = match &record.outcome {
        Outcome::Answered { judged, .. } if judged.verdict == Verdict::Valid => return None,
        Outcome::Answered { judged, answer } => {
            let place = match judged.place.is_empty() {
                true => String::new(),
                false => format!("{}: ", judged.place),
            };
            let what = match judged.verdict {
                _ if answer.is_truncated() => "truncated",
                Verdict::Wrapped => "valid among other text",
                Verdict::NotJson => "not JSON",
                Verdict::Unjudged => "not judged",
                Verdict::Valid | Verdict::Invalid => "invalid",
            };
            (what.to_owned(), format!("{place}{}", judged.reason))
        }
        Outcome::Failed(fault) => (fault.kind.name().replace('_', " "), fault.reason.clone()),
    };
    Some(Failure {
        case: group.case(record),
        what,
        reason,
        command: format!("{} {}", group.again, quoted(&record.name)),
    })
}

fn answers(tallies: &[Tally]) -> Vec<Answer> {
    let mut answers = vec![valid_answers(tallies)];
    answers.extend(declared(tallies));
    answers.push(worst(tallies));
    answers.push(first_tokens(tallies));
    answers.push(tokens(tallies));
    answers.push(requests(tallies));
    answers
}

/// Joins a sentence for each group. A single one needs no name.
fn for_each(tallies: &[Tally], sentence: impl Fn(&Tally) -> String) -> String {
    match tallies {
        [only] => sentence(only),
        all => {
            let named = all
                .iter()
                .map(|tally| format!("{}: {}", tally.label, sentence(tally)));
            named.collect::<Vec<_>>().join("; ")
        }
    }
}

fn answer(question: &str, answer: String, mood: Mood) -> Answer {
    Answer {
        question: question.to_owned(),
        answer,
        mood,
    }
}

/// A constraint promises that all answers are valid; nothing else does.
fn mood(promised: impl Iterator<Item = Share>) -> Mood {
    let promised: Vec<Share> = promised.filter(|share| share.all > 0).collect();
    match promised.iter().all(|share| share.part == share.all) {
        _ if promised.is_empty() => Mood::Plain,
        true => Mood::Good,
        false => Mood::Bad,
    }
}

fn constrained(tallies: &[Tally]) -> impl Iterator<Item = &Tally> {
    tallies.iter().filter(|tally| tally.arm.constrains())
}

fn valid_answers(tallies: &[Tally]) -> Answer {
    let text = for_each(tallies, |tally| tally.coverage.empirical().sentence());
    let mood = mood(constrained(tallies).map(|tally| tally.coverage.empirical()));
    answer("For what share of the schemas is the answer valid?", text, mood)
}

fn declared(tallies: &[Tally]) -> Option<Answer> {
    constrained(tallies).next()?;
    let constrained: Vec<Tally> = constrained(tallies).cloned().collect();
    let text = for_each(&constrained, |tally| tally.coverage.declared().sentence());
    let mood = mood(constrained.iter().map(|tally| tally.coverage.declared()));
    Some(answer(
        "What share of the schemas does the endpoint take?",
        text,
        mood,
    ))
}

fn worst(tallies: &[Tally]) -> Answer {
    let text = for_each(tallies, |tally| {
        let reasons = tally.reasons.report();
        let first = reasons.as_object().and_then(|all| all.iter().next());
        first.map_or_else(
            || "nothing".to_owned(),
            |(reason, count)| format!("{reason} ({count} times)"),
        )
    });
    let is_clean = tallies
        .iter()
        .all(|tally| tally.coverage.valid == tally.coverage.asked);
    let mood = if is_clean { Mood::Good } else { Mood::Plain };
    answer("What went wrong most often?", text, mood)
}

fn first_tokens(tallies: &[Tally]) -> Answer {
    let text = for_each(tallies, |tally| {
        let first = spread(&tally.first_token_ms);
        let each = spread(&tally.token_ms);
        match (first, each) {
            (None, _) => "the endpoint did not stream".to_owned(),
            (Some(first), None) => format!("{first}; the time of a token is not known without usage"),
            (Some(first), Some(each)) => format!("{first}; then {each} for each token"),
        }
    });
    answer("How long does the first token take?", text, Mood::Plain)
}

fn spread(sorted: &[f64]) -> Option<String> {
    let (middle, late) = (rank(sorted, 0.5)?, rank(sorted, 0.99)?);
    Some(format!(
        "{} ms (median; 99 % within {} ms)",
        short(middle),
        short(late)
    ))
}

fn tokens(tallies: &[Tally]) -> Answer {
    let text = for_each(tallies, |tally| {
        let usage = &tally.usage;
        let mut parts = vec![
            format!("{} written", usage.completion_tokens),
            format!("{} read", usage.prompt_tokens),
        ];
        if usage.cached_tokens > 0 {
            parts.push(format!("{} of these from a cache", usage.cached_tokens));
        }
        if usage.answers_without > 0 {
            parts.push(format!("{} answers without usage", usage.answers_without));
        }
        let told = usage.lexiform.iter().map(|(name, sum)| format!("{name} {sum}"));
        parts.extend(told);
        parts.join(", ")
    });
    answer("How many tokens?", text, Mood::Plain)
}

fn requests(tallies: &[Tally]) -> Answer {
    let text = for_each(tallies, |tally| {
        let listed = |counts: &BTreeMap<&'static str, u64>| {
            let parts = counts.iter().map(|(kind, count)| format!("{kind} {count}"));
            parts.collect::<Vec<_>>().join(", ")
        };
        let coverage = &tally.coverage;
        let answered = coverage.asked - coverage.failed;
        let mut text = format!("{answered} of {}", coverage.asked);
        if !tally.by_fault.is_empty() {
            text += &format!("; without an answer: {}", listed(&tally.by_fault));
        }
        if !tally.retried.is_empty() {
            text += &format!("; asked again after: {}", listed(&tally.retried));
        }
        text
    });
    let mood = match tallies.iter().all(|tally| tally.coverage.failed == 0) {
        true => Mood::Good,
        false => Mood::Bad,
    };
    answer("Did the endpoint react to every request?", text, mood)
}

fn coverage_section(by: By, tallies: &[Tally]) -> Section {
    let mut parts = vec![
        paragraph(
            "Declared coverage is the share of the schemas that the endpoint took; empirical coverage that with a \
             valid answer; compliance the share of the valid among the answers that came to their end. Requests \
             that failed, prompts that were too long and answers that could not be judged are in none of them. \
             Valid values among other text, as in a block of Markdown, are counted apart and not as valid.",
        ),
        Part::Table(groups_table(by, tallies)),
    ];
    if tallies.len() > 1 {
        parts.push(Part::Chart(groups_chart(by, tallies)));
    }
    for tally in tallies {
        let title = format!("By part of the collection ({})", tally.label);
        parts.push(Part::Table(coverage_table(title, "part", &tally.by_split)));
    }
    for tally in tallies {
        let rows = tally
            .by_finish
            .iter()
            .map(|(name, count)| vec![name.clone(), count.to_string()]);
        parts.push(Part::Table(Table {
            title: format!("Why answers ended ({})", tally.label),
            columns: vec!["finish_reason".to_owned(), "answers".to_owned()],
            rows: rows.collect(),
            note: String::new(),
        }));
    }
    section("Coverage", parts)
}

fn groups_table(by: By, tallies: &[Tally]) -> Table {
    let counted = Coverage::default().counts();
    let mut columns = vec![by.word().to_owned()];
    columns.extend(counted.iter().map(|(name, _)| name.replace('_', " ")));
    columns.extend(["declared", "empirical", "compliance"].map(str::to_owned));
    let rows = tallies.iter().map(|tally| {
        let coverage = &tally.coverage;
        let mut row = vec![tally.label.clone()];
        row.extend(coverage.counts().iter().map(|(_, count)| count.to_string()));
        row.extend([
            declared_of(tally.arm, coverage),
            coverage.empirical().percent(),
            coverage.compliance().percent(),
        ]);
        row
    });
    Table {
        title: format!("By {}", by.word()),
        columns,
        rows: rows.collect(),
        note: match by {
            By::Arm => ARMS.to_owned(),
            By::Endpoint => String::new(),
        },
    }
}

/// What the names of the arms mean.
const ARMS: &str = "both: the schema is in the prompt and constrains the answer; constrained, told: one of the two; \
                    free: neither";

/// Only a request with a schema can show whether the endpoint takes it.
fn declared_of(arm: Arm, coverage: &Coverage) -> String {
    match arm.constrains() {
        true => coverage.declared().percent(),
        false => "–".to_owned(),
    }
}

fn groups_chart(by: By, tallies: &[Tally]) -> Chart {
    let bar = |tally: &Tally, series: &str, share: Share| {
        Some(Bar {
            label: tally.label.clone(),
            series: series.to_owned(),
            value: share.value()?,
            interval: share.interval(),
        })
    };
    let bars = tallies.iter().flat_map(|tally| {
        [
            bar(tally, "empirical coverage", tally.coverage.empirical()),
            bar(tally, "compliance", tally.coverage.compliance()),
        ]
    });
    Chart {
        title: format!("Valid answers by {}", by.word()),
        x: "share".to_owned(),
        y: by.word().to_owned(),
        scale: Scale::Linear,
        shape: Shape::Bars {
            bars: bars.flatten().collect(),
        },
    }
}

fn coverage_table(title: String, first: &str, by: &BTreeMap<String, Coverage>) -> Table {
    let columns = [
        first,
        "schemas",
        "refused",
        "valid",
        "invalid",
        "not JSON",
        "truncated",
        "empirical",
    ];
    let rows = by.iter().map(|(name, coverage)| {
        let counts = [
            coverage.asked,
            coverage.refused,
            coverage.valid,
            coverage.invalid,
            coverage.not_json + coverage.wrapped,
            coverage.truncated,
        ];
        let mut row = vec![name.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row.push(coverage.empirical().percent());
        row
    });
    Table {
        title,
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        note: String::new(),
    }
}

fn times_section(tallies: &[Tally]) -> Section {
    let row = |tally: &Tally, what: &str, sorted: &[f64]| {
        let mut row = vec![format!("{what} ({})", tally.label), sorted.len().to_string()];
        let at = |share| rank(sorted, share).map_or_else(|| "–".to_owned(), short);
        row.extend([0.5, 0.9, 0.99, 1.0].map(at));
        row
    };
    let rows = tallies.iter().flat_map(|tally| {
        [
            row(tally, "first token", &tally.first_token_ms),
            row(tally, "each token", &tally.token_ms),
        ]
    });
    let table = Table {
        title: "Times in milliseconds".to_owned(),
        columns: ["time", "answers", "50 %", "90 %", "99 %", "longest"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        note: "Measured by the client, from sending the request. The time to the first token includes the compile of the \
               schema, the prompt, and waiting for other requests; that of a token is the mean of its answer."
            .to_owned(),
    };
    let distribution = |title: &str, samples: fn(&Tally) -> &[f64]| {
        let series = tallies.iter().map(|tally| Series {
            name: tally.label.clone(),
            points: points(samples(tally)),
        });
        Part::Chart(Chart {
            title: title.to_owned(),
            x: "milliseconds".to_owned(),
            y: "share of the answers".to_owned(),
            scale: Scale::Log,
            shape: Shape::Distribution {
                series: series.collect(),
            },
        })
    };
    let mut parts = vec![
        Part::Table(table),
        distribution("Time to the first token", |tally| &tally.first_token_ms),
        distribution("Time for each token", |tally| &tally.token_ms),
    ];
    let by_law = tallies.iter().map(|tally| (tally.label.as_str(), &tally.laws));
    parts.extend(tally::laws(by_law).map(Part::Table));
    section("Times", parts)
}

fn keywords_section(tallies: &[Tally]) -> Section {
    let tables = tallies.iter().map(|tally| {
        let title = format!("By keyword of the schema ({})", tally.label);
        Part::Table(coverage_table(title, "keyword", &tally.by_keyword))
    });
    let about = "A schema is counted once for each keyword that it or a schema in it has.";
    let mut parts = vec![paragraph(about)];
    parts.extend(tables);
    section("Keywords", parts)
}

fn section(title: &str, parts: Vec<Part>) -> Section {
    Section {
        title: title.to_owned(),
        parts,
    }
}

fn paragraph(text: &str) -> Part {
    Part::Paragraph(Paragraph {
        text: text.to_owned(),
    })
}

/// Returns the figures of each group by name.
fn figures(tallies: &[Tally]) -> Map<String, Value> {
    tallies
        .iter()
        .map(|tally| (tally.label.clone(), figures_of(tally)))
        .collect()
}

fn figures_of(tally: &Tally) -> Value {
    let counts = tally
        .coverage
        .counts()
        .map(|(name, count)| (name.to_owned(), json!(count)));
    let mut figures: Map<String, Value> = counts.into_iter().collect();
    let usage = &tally.usage;
    let shares = |coverage: &Coverage| json!({"asked": coverage.asked, "valid": coverage.valid, "empirical": coverage.empirical().value()});
    let by = |groups: &BTreeMap<String, Coverage>| -> Map<String, Value> {
        groups
            .iter()
            .map(|(name, it)| (name.clone(), shares(it)))
            .collect()
    };
    let declared = tally
        .coverage
        .declared()
        .value()
        .filter(|_| tally.arm.constrains());
    figures.extend([
        ("declared".to_owned(), json!(declared)),
        ("empirical".to_owned(), json!(tally.coverage.empirical().value())),
        (
            "compliance".to_owned(),
            json!(tally.coverage.compliance().value()),
        ),
        ("keys_twice".to_owned(), json!(tally.keys_twice)),
        ("first_token_ms".to_owned(), percentiles(&tally.first_token_ms)),
        ("token_ms".to_owned(), percentiles(&tally.token_ms)),
        ("prompt_tokens".to_owned(), json!(usage.prompt_tokens)),
        ("cached_tokens".to_owned(), json!(usage.cached_tokens)),
        ("completion_tokens".to_owned(), json!(usage.completion_tokens)),
        ("answers_without_usage".to_owned(), json!(usage.answers_without)),
        ("lexiform".to_owned(), json!(usage.lexiform)),
        ("finish".to_owned(), json!(tally.by_finish)),
        ("faults".to_owned(), json!(tally.by_fault)),
        ("retried".to_owned(), json!(tally.retried)),
        ("reasons".to_owned(), tally.reasons.report()),
        ("by_split".to_owned(), Value::Object(by(&tally.by_split))),
        ("by_keyword".to_owned(), Value::Object(by(&tally.by_keyword))),
    ]);
    Value::Object(figures)
}

fn percentiles(sorted: &[f64]) -> Value {
    let at = |share| rank(sorted, share).map(|it| (it * 1000.0).round() / 1000.0);
    json!({"count": sorted.len(), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0)})
}

/// Returns the smallest sample that at least this share of the samples does not exceed.
fn rank(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The most points of a distribution: more cannot be seen.
const POINTS: usize = 200;

/// Returns the points of a cumulative distribution, at most [`POINTS`], among them the first and the last.
fn points(sorted: &[f64]) -> Vec<(f64, f64)> {
    let count = sorted.len();
    let chosen = count.min(POINTS);
    let index = |point: usize| match chosen {
        0 | 1 => point,
        _ => point * (count - 1) / (chosen - 1),
    };
    let point = |at: usize| (sorted[at], (at + 1) as f64 / count as f64);
    (0..chosen).map(|it| point(index(it))).collect()
}

/// Returns a number with about three digits.
fn short(value: f64) -> String {
    match value {
        small if small < 10.0 => format!("{small:.2}"),
        middle if middle < 100.0 => format!("{middle:.1}"),
        large => format!("{large:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_keeps_its_ends() {
        let samples: Vec<f64> = (1..=1000).map(f64::from).collect();
        let points = points(&samples);
        assert_eq!(
            (points.len(), points[0], points[199]),
            (200, (1.0, 0.001), (1000.0, 1.0))
        );
        assert_eq!(super::points(&[7.0]), [(7.0, 1.0)]);
        assert!(super::points(&[]).is_empty());
    }

    #[test]
    fn percentiles_are_samples() {
        assert_eq!(rank(&[1.0, 2.0, 3.0, 4.0], 0.5), Some(2.0));
        assert_eq!(rank(&[1.0, 2.0], 0.99), Some(2.0));
        assert_eq!(rank(&[], 0.5), None);
    }
}
