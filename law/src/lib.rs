//! What a constraint does to the distribution of a model: laws of sampling, drafts, and their verification.
//!
//! ```text
//!  logits, mask ─► law (which distribution is drawn from)
//!  drafts (trees of tokens) ─► verify (which of them the law accepts)
//!  monitor (constraints of a host, which may know no mask)
//! ```
//!
//! Of the grammars below it this crate names a vocabulary and a state; the rules themselves know rows of logits and sets of
//! tokens. This crate is an interface between the crates of Lexiform: its releases follow theirs, and it may change in
//! any of them. Depend on `lexiform` instead.

#![forbid(unsafe_code)]

pub mod law;

pub mod draft;
pub mod verify;

pub mod monitor;
