//! Grammars as byte machines, and the exact token masks that they allow.
//!
//! The lower half of the [`lexiform`](https://docs.rs/lexiform) crate, in the order of its pipeline:
//!
//! ```text
//!  grammar (the IR) ─► pushdown (lazy, byte-level) ─┐
//!        language (regular parts as automata) ──────┼─► mask ─► budget ─► matcher
//!        vocab (tokens as bytes, a trie) ───────────┘
//! ```
//!
//! Front ends (`lexiform-syntax`) build a [`grammar::Cfg`]; a [`pushdown::Machine`] reads it, and a
//! [`matcher::Grammar`] asks the machine for masks. This crate is an interface between the crates of
//! Lexiform: its releases follow theirs, and it may change in any of them. Depend on `lexiform` instead.

#![forbid(unsafe_code)]
// The docs of modules are also for those who read the source.
#![allow(rustdoc::private_intra_doc_links)]

pub mod error;
pub mod limits;
pub mod work;

pub mod idna;

pub mod grammar;
pub mod language;

pub mod vocab;

pub mod pushdown;

pub mod mask;

mod budget;
pub mod matcher;
