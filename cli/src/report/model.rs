//! The contents of a report.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{floats, number};

/// A report of one run of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The evaluation that was run, such as `maskbench`.
    pub kind: String,
    /// The heading of the page.
    pub title: String,
    /// How the report was made, so that it can be made again.
    pub made: Made,
    /// The first screen: what somebody who chooses an engine wants to know, each with its answer.
    pub answers: Vec<Answer>,
    /// The parts with headings, in the order of reading.
    pub sections: Vec<Section>,
    /// The cases that failed, all of them.
    pub failures: Vec<Failure>,
    /// The figures by name, which later runs compare with theirs. Objects are nested figures.
    pub figures: Map<String, Value>,
}

/// How a report was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The day, as `2026-11-28`.
    pub date: String,
    /// The command line.
    pub command: String,
    /// The names and versions of the programs that were measured, ours first.
    pub versions: Vec<(String, String)>,
    /// The processor, its cores, the memory, and whatever else figures depend on: names and values.
    pub machine: Vec<(String, String)>,
    /// The files and folders from which cases were read.
    pub data: Vec<Data>,
}

/// A file or folder from which cases were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// The path, as it was given.
    pub path: String,
    /// The size of the file, or of all files of the folder.
    pub bytes: u64,
    /// The SHA-256 sum of the file in hexadecimal; for a folder, of the lines `SUM  PATH` of its files in
    /// order of path, as `sha256sum` prints them.
    pub sha256: String,
}

/// A question of a reader, and its answer in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The question, such as `Which schemas does it refuse?`.
    pub question: String,
    /// The answer, with its figures.
    pub answer: String,
    /// Whether it is good news.
    pub mood: Mood,
}

/// Whether an answer is good news. A page never says it by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mood {
    /// Nothing is wrong.
    Good,
    /// Something is wrong.
    Bad,
    /// A fact that is neither good nor bad.
    #[default]
    Plain,
}

/// A part of the report with a heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// What it shows, in the order of reading.
    pub parts: Vec<Part>,
}

/// A paragraph, a table or a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    /// A paragraph of text.
    Paragraph(Paragraph),
    /// A table.
    Table(Table),
    /// A plot.
    Chart(Chart),
}

/// A paragraph of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paragraph {
    /// The text, without markup.
    pub text: String,
}

/// A table. Its first column names the rows; all others are aligned to the right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The caption.
    pub title: String,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The cells of each row; as many as there are columns.
    pub rows: Vec<Vec<String>>,
    /// What a reader must know to understand the cells. May be empty.
    pub note: String,
}

/// A plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// The caption.
    pub title: String,
    /// The name of the horizontal axis, with its unit.
    pub x: String,
    /// The name of the vertical axis, with its unit.
    pub y: String,
    /// The scale of the axis on which values lie: `x` of a distribution and of bars, both axes of lines.
    pub scale: Scale,
    /// The kind of the plot, with its data.
    pub shape: Shape,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal distances are equal differences.
    #[default]
    Linear,
    /// Equal distances are equal ratios.
    Log,
}

/// The kind of a plot, with its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum Shape {
    /// Cumulative distributions: for each series, points of a value and the share of samples of at most it,
    /// in order. Shares have a scale of their own, on which 90%, 99% and 99.9% are as far apart.
    Distribution {
        /// The distributions, each with its name.
        series: Vec<Series>,
    },
    /// Lines through points, for example of growth with the size of a schema.
    Lines {
        /// The lines, each with its name.
        series: Vec<Series>,
    },
    /// Horizontal bars, in groups of the same label.
    Bars {
        /// The bars; those of one group follow each other.
        bars: Vec<Bar>,
    },
}

/// A named list of points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points, in the order in which a line connects them. Those that are not finite are not drawn.
    #[serde(deserialize_with = "floats::points")]
    pub points: Vec<(f64, f64)>,
}

/// A bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// The name of the group.
    pub label: String,
    /// The name of the series that the bar belongs to, by which it is coloured.
    pub series: String,
    /// The length of the bar.
    #[serde(deserialize_with = "floats::one")]
    pub value: f64,
    /// The ends of an interval around the value, if one is known.
    #[serde(default, deserialize_with = "floats::interval")]
    pub interval: Option<(f64, f64)>,
}

/// A case that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The name of the case.
    pub case: String,
    /// What went wrong, as `accepted wrongly`.
    pub what: String,
    /// The place and the reason. May be empty.
    pub reason: String,
    /// A command that shows the failure again. May be empty.
    pub command: String,
}

impl Report {
    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        // Every key is a text, so nothing can fail; a number that is not finite becomes null.
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Failure {
    /// Groups failures by what went wrong, the largest group first.
    pub(super) fn groups(failures: &[Failure]) -> Vec<(&str, Vec<&Failure>)> {
        let mut groups: BTreeMap<&str, Vec<&Failure>> = BTreeMap::new();
        for failure in failures {
            groups.entry(&failure.what).or_default().push(failure);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| Reverse(group.len()));
        groups
    }
}

impl Made {
    /// Returns the versions, the machine and the data as tables, without those that are empty.
    pub(super) fn tables(&self) -> Vec<Table> {
        let pairs = |title: &str, columns: [&str; 2], pairs: &[(String, String)]| Table {
            title: title.to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: pairs
                .iter()
                .map(|(name, value)| vec![name.clone(), value.clone()])
                .collect(),
            note: String::new(),
        };
        let data = self.data.iter().map(|data| {
            let bytes = number::count(usize::try_from(data.bytes).unwrap_or(usize::MAX));
            vec![data.path.clone(), bytes, data.sha256.clone()]
        });
        let data = Table {
            title: "Data".to_owned(),
            columns: ["path", "bytes", "SHA-256"].map(str::to_owned).to_vec(),
            rows: data.collect(),
            note: String::new(),
        };
        let versions = pairs("Versions", ["program", "version"], &self.versions);
        let machine = pairs("Machine", ["part", ""], &self.machine);
        let tables = [versions, machine, data].into_iter();
        tables.filter(|table| !table.rows.is_empty()).collect()
    }
}
