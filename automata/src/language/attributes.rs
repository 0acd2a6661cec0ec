//! Attributes of the states of a regular language, each computed on first use.
//!
//! ```text
//!   infinite, words_left   how many words continue from a state
//!   ends                   how words begin and end
//!   completions            the words that continue from a state, one by one
//!   lengths                how long the shortest of them are; found by shortest_words
//! ```
//!
//! Each attribute is computed separately: a language costs nothing until it is queried, and most are queried
//! for one of these or none.

mod completions;
mod ends;
pub(super) mod infinite;
pub(super) mod lengths;
pub(super) mod shortest_words;
pub(super) mod words_left;
