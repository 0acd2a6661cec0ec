//! The contents of a report.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A report of one run of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The evaluation that was run, such as `maskbench`.
    pub kind: String,
    pub title: String,
    /// How the report was made, so that it can be made again.
    pub made: Made,
    /// The first screen: what somebody who chooses an engine wants to know, each with its answer.
    pub answers: Vec<Answer>,
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
    pub data: Vec<Data>,
}

/// A file or folder from which cases were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// The path, as it was given.
    pub path: String,
    pub bytes: u64,
    /// The SHA-256 sum of the file in hexadecimal; for a folder, of the sums of its files in order of path.
    pub sha256: String,
}

/// A question of a reader, and its answer in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub question: String,
    pub answer: String,
    pub mood: Mood,
}

/// Whether an answer is good news. A page never says it by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mood {
    Good,
    Bad,
    #[default]
    Plain,
}

/// A part of the report with a heading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    pub title: String,
    pub parts: Vec<Part>,
}

/// A paragraph, a table or a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    Paragraph(Paragraph),
    Table(Table),
    Chart(Chart),
}

/// A paragraph of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paragraph {
    pub text: String,
}

/// A table. Its first column names the rows; all others are aligned to the right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    /// The cells of each row; as many as there are columns.
    pub rows: Vec<Vec<String>>,
    /// What a reader must know to understand the cells. May be empty.
    pub note: String,
}

/// A plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    pub title: String,
    /// The name of the horizontal axis, with its unit.
    pub x: String,
    /// The name of the vertical axis, with its unit.
    pub y: String,
    /// The scale of the axis on which values lie: `x` of a distribution and of bars, both axes of lines.
    pub scale: Scale,
    pub shape: Shape,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    #[default]
    Linear,
    Log,
}

/// The kind of a plot, with its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum Shape {
    /// Cumulative distributions: for each series, points of a value and the share of samples of at most it.
    Distribution { series: Vec<Series> },
    /// Lines through points, for example of growth with the size of a schema.
    Lines { series: Vec<Series> },
    /// Horizontal bars, in groups of the same label.
    Bars { bars: Vec<Bar> },
}

/// A named list of points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// A bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    pub label: String,
    /// The name of the series that the bar belongs to, by which it is coloured.
    pub series: String,
    pub value: f64,
    /// The ends of an interval around the value, if one is known.
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
