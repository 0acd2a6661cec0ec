//! Answers of models: their thoughts, their content and their calls of tools, read while they are written.
//!
//! ```text
//!   tags::model_formats ─► table ─► frames ┐
//!                          sections ───────┴► format ─► reader: text ─► parts with their places
//!                          scanner: JSON byte by byte ─► values: pointers of a JSON text ┴► events
//! ```
//!
//! The [`table`] has the frames in which each family of models writes calls; the service writes its grammars
//! from them, and the [`AnswerReader`] reads them back, with or without a constraint. [`Events`] joins it
//! with the [values](JsonValues) of content and arguments.

mod events;
mod format;
mod frames;
mod marks;
mod object;
mod reader;
mod scanner;
mod sections;
mod table;
mod values;

pub use events::{Event, EventKind, Events};
pub use format::{AnswerFormat, CallMode, Reading, Thought};
pub use frames::{Frame, Piece, RUN, Tool, pattern};
pub use reader::{AnswerPlace, AnswerReader, Part, Spanned};
pub use scanner::{JsonScanner, JsonStep};
pub use sections::{Section, SectionKind, first_marks, sections};
pub use table::{CALL, END_CALL, FRAME_MARKS, FRAMES, frames, relaxed_frames};
pub use values::{JsonEvent, JsonValues};

#[cfg(test)]
mod tests;
