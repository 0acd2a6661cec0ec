//! The front ends of Lexiform: JSON Schema, regular expressions, grammar texts and structural tags.
//!
//! Each lowers a source to a grammar, [`lexiform_automata::grammar::Cfg`], or reports all problems of the
//! source with their places. No front end knows a machine, a mask or a model. This crate is an interface
//! between the crates of Lexiform: its releases follow theirs, and it may change in any of them. Depend on
//! `lexiform` instead.

#![forbid(unsafe_code)]
// The docs of modules are also for those who read the source.
#![allow(rustdoc::private_intra_doc_links)]

pub mod suggest;

pub mod regex;

pub mod notation;
pub mod schema;

pub mod tags;
