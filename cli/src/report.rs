//! Reports of evaluations: a list of figures, tables and plots, written as JSON, as Markdown or as a page.
//!
//! ```text
//!   an evaluation ──► Report ──┬─► page       one HTML file, without scripts and without other files
//!                              ├─► markdown
//!                              └─► JSON       which a later run reads as its baseline
//! ```
//!
//! An evaluation says *what* is shown, with the types of `model.rs`; this room decides how it looks. Nothing in
//! a report depends on its kind.

mod model;

pub use model::{
    Answer, Bar, Chart, Data, Failure, Made, Mood, Paragraph, Part, Report, Scale, Section, Series, Shape,
    Table,
};
