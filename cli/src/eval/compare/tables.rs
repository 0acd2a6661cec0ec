//! The tables and plots of outcomes, times and growth, and of masks that differ.

use std::collections::{BTreeMap, BTreeSet};

use super::dispute::{Blame, Example, Judgement, Side};
use super::findings::Findings;
use super::place::Place;
use super::run::{Finished, OURS};
use super::tally::{Tally, Times};
use crate::eval::figures::Samples;
use crate::report::{Chart, Part, Scale, Series, Shape, Table, count, number, shortened};

/// The shares at which a distribution is drawn: the middle coarsely, the tail finely.
const SHARES: [f64; 24] = [
    0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98,
    0.99, 0.995, 0.998, 0.999, 0.9999, 1.0,
];
/// The reasons for refusals that are listed for each engine.
const LISTED_REASONS: usize = 5;

impl Findings<'_> {
    pub(super) fn outcomes(&self) -> Part {
        let rows = self.engines.iter().map(|engine| {
            let tally = &engine.tally;
            let counts = [
                tally.all.asked,
                tally.right,
                tally.all.refused,
                tally.lost,
                tally.all.narrow,
                tally.all.wide,
            ];
            let counts = counts.iter().map(|count| grouped((*count).into()));
            std::iter::once(engine.name.clone()).chain(counts).collect()
        });
        let note = format!(
            "A schema is right if every valid instance is allowed to its end and no invalid one is. An engine is \
             out of bounds if it takes more than {} s of processor time or {} MiB for a schema, or ends its \
             process; that is a part of the refused. Engines that are too slow for the whole collection are asked \
             about fewer schemas, evenly over it.",
            self.seconds, self.mebibytes
        );
        let columns = [
            "engine",
            "schemas",
            "right",
            "refused",
            "out of bounds",
            "valid refused",
            "invalid accepted",
        ];
        table("Schemas by what became of them", &columns, rows.collect(), &note)
    }

    pub(super) fn refusals(&self) -> Part {
        let mut rows = Vec::new();
        for engine in self.engines {
            let report = engine.tally.reasons.report();
            let reasons = report.as_object().into_iter().flatten().take(LISTED_REASONS);
            rows.extend(reasons.map(|(reason, count)| {
                let count = count.as_u64().map_or_else(String::new, grouped);
                vec![engine.name.clone(), count, shortened(reason, 100)]
            }));
        }
        table(
            "The most frequent reasons for refusals",
            &["engine", "schemas", "reason"],
            rows,
            "",
        )
    }

    pub(super) fn by_keyword(&self) -> Part {
        let keywords: BTreeSet<&String> = self
            .engines
            .iter()
            .flat_map(|it| it.tally.keywords.keys())
            .collect();
        let mut rows: Vec<(u32, Vec<String>)> = Vec::new();
        for keyword in keywords {
            let counts = |engine: &Finished| engine.tally.keywords.get(keyword).copied().unwrap_or_default();
            let most = self
                .engines
                .iter()
                .map(|engine| counts(engine).asked)
                .max()
                .unwrap_or(0);
            let cells = self.engines.iter().map(|engine| {
                let one = counts(engine);
                match one.asked {
                    0 => "–".to_owned(),
                    asked => format!("{} · {} · {} of {asked}", one.refused, one.narrow, one.wide),
                }
            });
            rows.push((most, std::iter::once(keyword.clone()).chain(cells).collect()));
        }
        rows.sort_by_key(|(most, _)| std::cmp::Reverse(*most));
        let columns = std::iter::once("keyword").chain(self.engines.iter().map(|it| it.name.as_str()));
        table(
            "By keyword: refused · valid instance refused · invalid instance accepted",
            &columns.collect::<Vec<_>>(),
            rows.into_iter().map(|(_, row)| row).collect(),
            "A schema counts for each of its keywords, whichever of them is the cause.",
        )
    }

    pub(super) fn distribution(&self) -> Part {
        let series = self.engines.iter().map(|engine| {
            let values = engine.tally.times.cold.percentiles(&SHARES);
            Series {
                name: engine.name.clone(),
                points: values.into_iter().zip(SHARES).collect(),
            }
        });
        Part::Chart(Chart {
            title: "Step and mask, each engine on the schemas that it takes".to_owned(),
            x: "time, µs".to_owned(),
            y: "share of masks".to_owned(),
            scale: Scale::Log,
            shape: Shape::Distribution {
                series: series.collect(),
            },
        })
    }

    pub(super) fn times(&self) -> Part {
        let rows = KINDS.iter().flat_map(|(name, samples)| {
            STATISTICS.iter().map(move |(statistic, of)| {
                let cells = self
                    .engines
                    .iter()
                    .map(|engine| microseconds(of(samples(&engine.tally.times))));
                std::iter::once(format!("{name}: {statistic}"))
                    .chain(cells)
                    .collect()
            })
        });
        let counts = self
            .engines
            .iter()
            .map(|engine| grouped(engine.tally.times.cold.count() as u64));
        let counts = std::iter::once("step and mask, cold: samples".to_owned())
            .chain(counts)
            .collect();
        let columns = std::iter::once("µs").chain(self.engines.iter().map(|it| it.name.as_str()));
        table(
            "Times of everything that each engine did",
            &columns.collect::<Vec<_>>(),
            rows.chain([counts]).collect(),
            "Cold: on a grammar that was just compiled; a later instance profits from an earlier one. Warm: all \
             instances once more. An engine that refuses what is hard has easier schemas here: the next table has \
             the same work for both.",
        )
    }

    /// Compares times on the schemas that both compiled and the tokens that both took.
    pub(super) fn ratios(&self) -> Part {
        let mut rows = Vec::new();
        for engine in self.others() {
            let (ours, theirs) = &engine.tally.shared;
            for (name, samples) in KINDS {
                let mut cells = vec![format!("{}: {name}", engine.name)];
                cells.extend(STATISTICS.iter().map(|(_, of)| {
                    let ratio = of(samples(theirs)).zip(of(samples(ours)));
                    times(ratio.map(|(theirs, ours)| theirs / ours))
                }));
                cells.push(grouped(samples(ours).count() as u64));
                rows.push(cells);
            }
        }
        let names = STATISTICS.iter().map(|(name, _)| *name);
        let columns = std::iter::once("on the same work")
            .chain(names)
            .chain(["samples"]);
        let title = format!("Times as multiples of {OURS}'s");
        table(
            &title,
            &columns.collect::<Vec<_>>(),
            rows,
            "Schemas that both compiled, tokens that both took.",
        )
    }

    pub(super) fn costs(&self) -> Part {
        let rows = self.engines.iter().map(|engine| {
            let (tally, loaded) = (&engine.tally, &engine.tally.loaded);
            vec![
                engine.name.clone(),
                microseconds(Some(loaded.once_us / 1000.0)),
                mebibytes(loaded.resident),
                mebibytes(tally.resident),
                format!("{:.2}", loaded.clock_us),
                format!("{:.2}", loaded.call_us),
                two_threads(tally),
            ]
        });
        table(
            "Once per vocabulary, memory, and what is in every sample",
            &[
                "engine",
                "once, ms",
                "memory for it, MiB",
                "process at most, MiB",
                "clock, µs",
                "empty call, µs",
                "two threads",
            ],
            rows.collect(),
            "Once: from the tokens, or the tokenizer's file, to an engine that can compile. The process has its \
             language and the list of tokens in it. The clock is in every sample, and from Python one call or two \
             as well. Two threads: what two threads get done on one grammar where one thread gets 1 done, the \
             median of some schemas, on the wall: it needs two free cores. A dash: sequences cannot share a \
             grammar.",
        )
    }

    pub(super) fn growth_parts(&self) -> Vec<Part> {
        let mut parts = vec![self.by_size()];
        if !self.growth.is_empty() {
            parts.extend([self.by_vocabulary(), self.vocabulary_lines()]);
        }
        parts
    }

    fn by_size(&self) -> Part {
        let series = self.engines.iter().map(|engine| Series {
            name: engine.name.clone(),
            points: means(&engine.tally.compiles_by_size),
        });
        Part::Chart(Chart {
            title: "Compile by size of the schema".to_owned(),
            x: "size of the schema, bytes".to_owned(),
            y: "mean compile, µs".to_owned(),
            scale: Scale::Log,
            shape: Shape::Lines {
                series: series.collect(),
            },
        })
    }

    fn vocabulary_lines(&self) -> Part {
        let mut lines: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for grown in self.growth {
            for engine in &grown.engines {
                if let Some(mean) = engine.tally.times.cold.mean() {
                    lines
                        .entry(&engine.name)
                        .or_default()
                        .push((grown.tokens as f64, mean));
                }
            }
        }
        let series = lines.into_iter().map(|(name, mut points)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series {
                name: name.to_owned(),
                points,
            }
        });
        Part::Chart(Chart {
            title: "Step and mask by size of the vocabulary".to_owned(),
            x: "tokens".to_owned(),
            y: "mean, µs".to_owned(),
            scale: Scale::Log,
            shape: Shape::Lines {
                series: series.collect(),
            },
        })
    }

    fn by_vocabulary(&self) -> Part {
        let mut rows = Vec::new();
        for grown in self.growth {
            let name = |engine: &str| {
                format!(
                    "{}, {} tokens: {engine}",
                    grown.name,
                    grouped(grown.tokens as u64)
                )
            };
            rows.extend(grown.engines.iter().map(|engine| {
                let tally = &engine.tally;
                let p99 = tally.times.cold.percentiles(&[0.99]).first().copied();
                vec![
                    name(&engine.name),
                    microseconds(Some(tally.loaded.once_us / 1000.0)),
                    mebibytes(tally.loaded.resident),
                    format!("{} of {}", tally.right, tally.all.asked),
                    tally.lost.to_string(),
                    microseconds(tally.times.first.mean()),
                    microseconds(tally.times.cold.mean()),
                    microseconds(p99),
                ]
            }));
            rows.extend(grown.left_out.iter().map(|(engine, why)| {
                let mut row = vec![name(engine), shortened(why, 60)];
                row.resize(8, "–".to_owned());
                row
            }));
        }
        table(
            "The same schemas with each tokenizer",
            &[
                "tokenizer: engine",
                "once, ms",
                "memory, MiB",
                "right",
                "out of bounds",
                "first mask, µs: mean",
                "step and mask, µs: mean",
                "p99",
            ],
            rows,
            "Rows beyond the tokenizer's tokens are unused.",
        )
    }
}

/// Picks the samples of one kind of work.
type Kind = fn(&Times) -> &Samples;

/// Computes a figure of samples.
type Statistic = fn(&Samples) -> Option<f64>;

/// The measurements of a walk, by name.
const KINDS: [(&str, Kind); 4] = [
    ("compile", |times| &times.compile),
    ("compile and first mask", |times| &times.first),
    ("step and mask, cold", |times| &times.cold),
    ("step and mask, warm", |times| &times.warm),
];

/// The statistics of a measurement, by name.
const STATISTICS: [(&str, Statistic); 4] = [
    ("mean", Samples::mean),
    ("p50", |samples| samples.percentiles(&[0.5]).first().copied()),
    ("p99", |samples| samples.percentiles(&[0.99]).first().copied()),
    ("p99.9", |samples| samples.percentiles(&[0.999]).first().copied()),
];

fn two_threads(tally: &Tally) -> String {
    tally
        .two_threads()
        .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}×"))
}

/// Returns the mean of each power of two, at its middle.
fn means(by_size: &BTreeMap<u32, (u32, f64)>) -> Vec<(f64, f64)> {
    let middle = |power: u32| 1.5 * f64::from(power).exp2();
    let points = by_size.iter();
    points
        .map(|(power, (count, sum))| (middle(*power), sum / f64::from(*count)))
        .collect()
}

impl Findings<'_> {
    pub(super) fn dispute_parts(&self) -> Vec<Part> {
        if self.others().all(|engine| engine.tally.disputes.masks == 0) {
            return Vec::new();
        }
        vec![self.mask_counts(), self.kinds(), self.examples()]
    }

    fn mask_counts(&self) -> Part {
        let rows = self.others().map(|engine| {
            let disputes = &engine.tally.disputes;
            let share = 100.0 * disputes.different as f64 / disputes.masks.max(1) as f64;
            vec![
                engine.name.clone(),
                grouped(disputes.masks),
                grouped(disputes.different),
                format!("{share:.1} %"),
                grouped(disputes.looked_at),
            ]
        });
        table(
            "Masks of Lexiform and of each engine at the same text",
            &["engine", "compared", "different", "share", "looked at"],
            rows.collect(),
            "Text tokens and the end are compared. Of each schema, the first two pairs of different masks are \
             looked at token by token.",
        )
    }

    fn kinds(&self) -> Part {
        let mut rows = Vec::new();
        for engine in self.others() {
            for ((side, place), tally) in &engine.tally.disputes.kinds {
                rows.push(vec![
                    engine.name.clone(),
                    allowed_by(*side, &engine.name),
                    place.to_string(),
                    grouped(tally.tokens),
                    grouped(tally.masks),
                    grouped(tally.schemas.len() as u64),
                ]);
            }
        }
        table(
            "Where tokens are allowed by one engine alone",
            &["engine", "allowed by", "place", "tokens", "masks", "schemas"],
            rows,
            "The place is that of the first byte of the token that the other engine refuses. How far another \
             engine reads a token is told by the shorter tokens that its mask allows.",
        )
    }

    fn examples(&self) -> Part {
        let mut rows = Vec::new();
        for engine in self.others() {
            for ((side, place), tally) in &engine.tally.disputes.kinds {
                for example in &tally.examples {
                    rows.push(vec![
                        format!("{} at {}", engine.name, example.schema),
                        format!("{place}, {}", allowed_by(*side, &engine.name)),
                        format!("{} ▸ {}", ending(&example.before, 40), token(example)),
                        whole(example),
                        judgement(example, *side, *place, &engine.name),
                    ]);
                }
            }
        }
        table(
            "A text for each kind",
            &[
                "engine and schema",
                "allowed by",
                "text ▸ token",
                "whole text",
                "who is right",
            ],
            rows,
            "Lexiform completes a text in the fewest tokens; another engine writes on by its own masks, at most \
             64 tokens. The validator is the crate jsonschema, which asserts formats here.",
        )
    }
}

fn allowed_by(side: Side, name: &str) -> String {
    match side {
        Side::Ours => "Lexiform alone".to_owned(),
        Side::Theirs => format!("{name} alone"),
    }
}

fn token(example: &Example) -> String {
    match example.token.as_str() {
        "" => "the end".to_owned(),
        token => format!("{token:?}"),
    }
}

fn whole(example: &Example) -> String {
    let none = || "not completed".to_owned();
    example
        .whole
        .as_ref()
        .map_or_else(none, |(text, _)| shortened(text, 160))
}

fn judgement(example: &Example, side: Side, place: Place, name: &str) -> String {
    let why = match &example.whole {
        Some((_, Judgement::Invalid(why) | Judgement::Unknown(why))) => format!(" ({})", shortened(why, 120)),
        _ => String::new(),
    };
    let how = if why.is_empty() { "valid" } else { "invalid" };
    let manner = if why.is_empty() { "narrow" } else { "wide" };
    match example.blame(side, place) {
        Blame::Nobody => "both allow the text".to_owned(),
        Blame::Choice => "valid: Lexiform leaves this spelling out by choice".to_owned(),
        Blame::Lexiform => format!("{how}: Lexiform is too {manner}{why}"),
        Blame::TheOther => format!("{how}: {name} is too {manner}{why}"),
        Blame::Unknown => format!("not known{why}"),
    }
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>, note: &str) -> Part {
    Part::Table(Table {
        title: title.to_owned(),
        columns: columns.iter().map(|it| (*it).to_owned()).collect(),
        rows,
        note: note.to_owned(),
    })
}

/// Writes microseconds; a dash if there are none.
pub(super) fn microseconds(value: Option<f64>) -> String {
    number(value.unwrap_or(f64::NAN))
}

/// Writes a ratio.
pub(super) fn times(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(value) => format!("{}×", number(value)),
        None => microseconds(None),
    }
}

/// Writes a number with separators of thousands.
pub(super) fn grouped(value: u64) -> String {
    count(usize::try_from(value).unwrap_or(usize::MAX))
}

fn mebibytes(bytes: u64) -> String {
    number(bytes as f64 / f64::from(1 << 20))
}

/// Keeps the end of a text, so many characters.
fn ending(text: &str, most: usize) -> String {
    let count = text.chars().count();
    match count > most {
        false => text.to_owned(),
        true => format!("…{}", text.chars().skip(count - most).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_validator_decides_who_is_wrong_except_about_cuts_and_spellings() {
        let said = |whole: Option<Judgement>, side, place| {
            let example = Example {
                schema: "s".to_owned(),
                before: String::new(),
                token: " ".to_owned(),
                whole: whole.map(|judgement| ("text".to_owned(), judgement)),
            };
            judgement(&example, side, place, "xgrammar")
        };
        let invalid = || Some(Judgement::Invalid("no".to_owned()));
        let valid = || Some(Judgement::Valid);
        let (ours, theirs) = (Side::Ours, Side::Theirs);
        assert_eq!(said(valid(), ours, Place::Key), "valid: xgrammar is too narrow");
        assert_eq!(
            said(invalid(), theirs, Place::Key),
            "invalid: xgrammar is too wide (no)"
        );
        assert_eq!(said(valid(), theirs, Place::Key), "valid: Lexiform is too narrow");
        assert_eq!(
            said(invalid(), ours, Place::Key),
            "invalid: Lexiform is too wide (no)"
        );
        assert_eq!(
            said(valid(), theirs, Place::Space),
            "valid: Lexiform leaves this spelling out by choice"
        );
        assert_eq!(said(valid(), ours, Place::Cut), "both allow the text");
        assert_eq!(said(None, theirs, Place::Key), "not known");
    }
}
