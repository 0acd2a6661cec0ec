//! Languages of texts that are given as they are: lists of texts, and the spans of a text.

pub mod choice;
pub mod extract;
