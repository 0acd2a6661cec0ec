//! Output for people and programs: colours, excerpts with a caret, problems of sources with their places, and
//! the formats of an answer.
//!
//! ```text
//!   Problem (JSON pointer, line and column, rule) ─► problems ─► place in the source ─► excerpt ─► print
//!                                                       │ pointers, spelling (places in JSON)
//! ```

pub mod excerpt;
pub mod output;
pub mod paint;
pub mod pointers;
pub mod problems;
pub mod spelling;
