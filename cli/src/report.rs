//! Reports of evaluations: a list of figures, tables and plots, written as JSON, as Markdown or as a page.
//!
//! ```text
//!   an evaluation ──► Report ──┬─► page       one HTML file, without scripts and without other files
//!                              ├─► markdown
//!                              ├─► JSON
//!                              └─► baseline   compared with the JSON of an earlier run
//! ```
//!
//! An evaluation says *what* is shown, with the types of `model.rs`; this room decides how it looks. Nothing
//! in a report depends on its kind. [`Destinations`] has the flags that all commands with reports share.

mod baseline;
mod chart;
mod destinations;
mod floats;
mod made;
mod markdown;
mod markup;
mod model;
mod number;
mod page;
mod picture;
mod plot;
mod table;

pub use baseline::{Baseline, Comparison};
pub use destinations::{Destinations, FLAGS, write};
pub use made::{CommandLine, memory, processor, quoted};
pub use model::{
    Answer, Bar, Chart, Data, Failure, Made, Mood, Paragraph, Part, Report, Scale, Section, Series, Shape,
    Table,
};
pub use number::count;

pub(crate) use markup::shortened;
pub(crate) use number::number;
pub(crate) use table::in_columns;

impl Report {
    /// Returns the report as an HTML page, which needs no other file.
    pub fn html(&self) -> String {
        page::html(self)
    }

    /// Returns the report as Markdown.
    pub fn markdown(&self) -> String {
        markdown::text(self)
    }

    /// Returns the table of this title as Markdown, without its title; `None` if there is none.
    pub fn table_as_markdown(&self, title: &str) -> Option<String> {
        let found = self.parts().find_map(|part| match part {
            Part::Table(table) if table.title == title => Some(table.clone()),
            _ => None,
        });
        let untitled = Table {
            title: String::new(),
            ..found?
        };
        Some(table::markdown(&untitled))
    }

    /// Returns the plot of this title as an SVG file; `None` if there is none.
    pub fn plot_as_svg(&self, title: &str) -> Option<String> {
        let found = self.parts().find_map(|part| match part {
            Part::Chart(chart) if chart.title == title => Some(chart),
            _ => None,
        });
        found.map(picture::svg)
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.sections.iter().flat_map(|section| &section.parts)
    }
}
