//! The front ends of Lexiform: JSON Schema, regular expressions, grammar texts and structural tags.
//!
//! Each front end lowers a source to a grammar, [`lexiform_automata::grammar::Cfg`], or reports all problems
//! of the source with their places. No front end knows about machines, masks or models. This crate is
//! internal to Lexiform: it is released together with the other crates, and its interface may change in any
//! release. Depend on `lexiform` instead.

#![forbid(unsafe_code)]
// The module docs link to private items, for readers of the source.
#![allow(rustdoc::private_intra_doc_links)]

pub mod suggest;

pub mod regex;

pub mod notation;
pub mod project;
pub mod schema;

pub mod answer;
pub mod tags;
