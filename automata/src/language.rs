//! Regular languages: compiles a regular expression to a minimal byte automaton with an id that grammars
//! share.
//!
//! ```text
//!   Regular ─► characters   each part determinised, over characters if possible, otherwise over bytes
//!           ─► product      intersection and complement, explored and trimmed
//!           ─► build        spelled in bytes, one table for all bounds of a count
//!           ─► counter      which counts of a counted part can still be completed
//!           ─► terminal     a cursor that reads one byte with one look-up
//!              minimise     states with the same language
//!              language_id  … and an id for that language, equal across automata
//!              longest      the bytes that must not follow a word, so that no word is a longer one
//!              attributes   other properties of states, computed on demand
//! ```
//!
//! This module does not depend on rules or stacks.

mod attributes;
mod build;
mod byte_set;
mod cache;
mod characters;
mod components;
mod counter;
mod error;
mod graph;
mod language_id;
mod longest;
mod minimise;
mod product;
mod table;
mod terminal;

pub use attributes::lengths::NEVER;
pub(crate) use attributes::lengths::{Lengths, plus};
pub(crate) use attributes::shortest_words::{length_of_many, lengths_over};
pub use byte_set::ByteSet;
pub use cache::Automata;
pub use characters::{Alphabet, Automaton, Letters, Room};
pub(crate) use components::components;
pub use counter::Cursor;
pub use error::TerminalError;
pub(crate) use language_id::LanguageId;
pub(crate) use terminal::CursorId;
pub use terminal::Terminal;
