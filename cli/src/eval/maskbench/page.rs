//! The report of a walk through the collection.

use serde_json::{Map, Value};

use super::Results;
use crate::eval::figures::Samples;
use crate::eval::verdict::{Counts, coverage};
use crate::report::{
    Answer, Chart, Made, Mood, Paragraph, Part, Report, Scale, Section, Series, Shape, Table,
};

impl Results {
    /// Returns the report without its failures.
    pub(super) fn report(&self, made: Made) -> Report {
        let figures = self.figures();
        let answers = self.answers(&figures);
        let sections = vec![self.times(&figures), self.growth(), self.coverage()];
        Report {
            kind: "maskbench".to_owned(),
            title: "Masks and compiles on MaskBench".to_owned(),
            made,
            answers,
            sections,
            failures: Vec::new(),
            figures,
        }
    }

    fn answers(&self, figures: &Map<String, Value>) -> Vec<Answer> {
        let mut answers = self.counts.answers("schemas", "instances");
        let times = [
            ("mask_us", "How long does a mask take?"),
            ("compile_us", "How long does a compile take?"),
        ];
        answers.extend(times.map(|(name, question)| {
            let figure = |part: &str| figures[name][part].as_f64();
            Answer {
                question: question.to_owned(),
                answer: match (figure("mean"), figure("p50"), figure("p99")) {
                    (Some(mean), Some(p50), Some(p99)) => format!(
                        "{} on average, half of them at most {}, 99 of 100 at most {}.",
                        duration(mean),
                        duration(p50),
                        duration(p99)
                    ),
                    _ => "Nothing was measured.".to_owned(),
                },
                mood: Mood::Plain,
            }
        }));
        answers
    }

    fn coverage(&self) -> Section {
        let splits = self.by_split.iter();
        let by_split = coverage("Schemas by part of the collection", "part", "schemas", splits);
        let mut keywords: Vec<(&String, &Counts)> = self.by_keyword.iter().collect();
        // The keywords with which most goes wrong come first.
        keywords.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.all - counts.right, counts.all)));
        let mut by_keyword = coverage("Schemas by keyword", "keyword", "schemas", keywords.into_iter());
        by_keyword.note = "A schema counts for every keyword that occurs in it, wherever its mistake is; keywords with which most goes wrong come first.".to_owned();
        Section {
            title: "Coverage".to_owned(),
            parts: vec![Part::Table(by_split), Part::Table(by_keyword)],
        }
    }

    fn times(&self, figures: &Map<String, Value>) -> Section {
        let measured = [
            ("mask_us", "step and mask", &self.mask_us),
            ("compile_us", "compile", &self.compile_us),
            ("first_mask_us", "compile and first mask", &self.first_mask_us),
        ];
        let parts = ["count", "mean", "p50", "p90", "p99", "p999", "max"];
        let rows = measured.map(|(name, label, _)| {
            let cells = parts.map(|part| shown(&figures[name][part]));
            std::iter::once(label.to_owned()).chain(cells).collect()
        });
        let columns = ["", "samples", "mean", "50%", "90%", "99%", "99.9%", "max"];
        let table = Table {
            title: "Times in microseconds".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.to_vec(),
            note: "Processor time of one thread. A mask is measured together with the step to it.".to_owned(),
        };
        let distribution = |title: &str, label: &str, samples: &Samples| {
            Part::Chart(Chart {
                title: title.to_owned(),
                x: "microseconds".to_owned(),
                y: "share of samples".to_owned(),
                scale: Scale::Log,
                shape: Shape::Distribution {
                    series: vec![Series {
                        name: label.to_owned(),
                        points: samples.distribution(),
                    }],
                },
            })
        };
        Section {
            title: "Times".to_owned(),
            parts: vec![
                Part::Table(table),
                distribution("Masks", "step and mask", &self.mask_us),
                distribution("Compiles", "compile", &self.compile_us),
            ],
        }
    }

    /// Shows how compiles grow with the size of schemas.
    fn growth(&self) -> Section {
        let mut groups: Vec<(u32, Samples)> = Vec::new();
        let mut sized = self.sizes.clone();
        sized.sort_by_key(|(bytes, _)| *bytes);
        for (bytes, microseconds) in sized {
            let power = bytes.max(1).ilog2();
            if groups.last().is_none_or(|(last, _)| *last != power) {
                groups.push((power, Samples::default()));
            }
            if let Some((_, samples)) = groups.last_mut() {
                samples.push(microseconds);
            }
        }
        let series = |name: &str, share: f64| Series {
            name: name.to_owned(),
            points: groups
                .iter()
                // The middle of the group on a logarithmic scale.
                .map(|(power, samples)| {
                    (
                        2_f64.powf(f64::from(*power) + 0.5).round(),
                        samples.quantile(share),
                    )
                })
                .collect(),
        };
        let chart = Chart {
            title: "Compiles by the size of the schema".to_owned(),
            x: "bytes of schema".to_owned(),
            y: "microseconds".to_owned(),
            scale: Scale::Log,
            shape: Shape::Lines {
                series: vec![series("median", 0.5), series("99%", 0.99), series("slowest", 1.0)],
            },
        };
        let tables = format!(
            "Before the first schema, tables for the vocabulary took {} and {:.1} MB, once for all schemas.",
            duration(self.prime_us),
            self.tables_bytes as f64 / 1e6
        );
        Section {
            title: "Growth".to_owned(),
            parts: vec![
                Part::Paragraph(Paragraph {
                    text: format!("Schemas are grouped by powers of two of their size. {tables}"),
                }),
                Part::Chart(chart),
            ],
        }
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() {
        "–".to_owned()
    } else {
        value.to_string()
    }
}

/// Writes a time with three digits, in the unit that fits it.
fn duration(microseconds: f64) -> String {
    let (value, unit) = match microseconds {
        small if small < 1e3 => (small, "µs"),
        medium if medium < 1e6 => (medium / 1e3, "ms"),
        large => (large / 1e6, "s"),
    };
    let decimals = match value {
        small if small < 10.0 => 2,
        medium if medium < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        assert_eq!(
            [0.5, 12.34, 345.6, 1_234.0, 2_500_000.0].map(duration),
            ["0.50 µs", "12.3 µs", "346 µs", "1.23 ms", "2.50 s"]
        );
    }
}
