//! Grammars as byte automata, and the exact token masks that they allow.
//!
//! This is the lower half of the [`lexiform`](https://docs.rs/lexiform) crate, in the order of its pipeline:
//!
//! ```text
//!  grammar (the IR) ─► pushdown (lazy, byte-level) ─┐
//!        language (regular parts as automata) ──────┼─► mask ─► budget ─► matcher
//!        vocab (tokens as bytes, a trie) ───────────┘
//! ```
//!
//! Front ends (`lexiform-syntax`) build a [`grammar::Cfg`]; a [`pushdown::Machine`] is compiled from it, and
//! a [`matcher::Grammar`] queries the machine for masks. This crate is an internal interface between the
//! crates of Lexiform: it is released together with them and may change in any release. Depend on `lexiform`
//! instead.

#![forbid(unsafe_code)]
// The module docs are also written for readers of the source, so they may link to private items.
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
