//! What is found out about the states of a regular language when it is first asked for.
//!
//! ```text
//!   infinite, words_left   how many words go on from a state
//!   ends                   how words begin and end
//!   completions            the words that go on from a state, one by one
//!   lengths                how long the shortest of them are; found by shortest_words
//!   alike                  which states a token cannot tell apart
//! ```
//!
//! Each is found by itself: a language that nobody asks costs nothing, and most are asked for one of these or
//! none.

mod completions;
mod ends;
pub(super) mod infinite;
pub(super) mod lengths;
pub(super) mod shortest_words;
pub(super) mod words_left;
