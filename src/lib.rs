//! Structured generation: grammars become exact token masks.
//!
//! ```text
//!  JSON Schema ─ schema ─┐
//!  regex ─────── regex ──┼─► grammar (one IR) ─► pushdown (lazy, byte-level) ─┐
//!  EBNF ──────── syntax ─┘                                                    ├─► mask ─► law ─► draft, verify
//!  tokenizer ─── vocab (tokens as bytes, a trie) ────────────────────────────┘
//! ```
//!
//! The library is pure: no I/O, no clock, no environment. A [`Grammar`] is immutable and shared between threads; the
//! [`State`] of one sequence is a small copyable value, so a fork or a rollback costs nothing.

#![forbid(unsafe_code)]

mod budget;
pub mod compile;

pub mod draft;
pub mod error;
pub mod grammar;
mod idna;
mod language;
pub mod law;
pub mod limits;
pub mod mask;
pub mod matcher;
pub mod monitor;
mod pushdown;
pub mod regex;
pub mod repair;
pub mod schema;
pub mod suggest;
pub mod syntax;
pub mod tags;
pub mod verify;
pub mod vocab;
mod work;

/// What a grammar becomes: a machine over bytes, and the regular languages in it.
pub mod machine {
    pub use crate::language::{Automata, Cursor, Terminal, TerminalError};
    pub use crate::pushdown::{Expected, Machine, TerminalSource, Way};
}

pub use compile::{Compiler, Options, Source, compile};
pub use error::{CompileError, Diagnostics, Exhausted};
pub use mask::Mask;
pub use matcher::{Ends, Grammar, Pool, Session, State};
pub use repair::{Repair, RepairError};
pub use work::briefly;

// The example of the README is a test like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// So are those of the docs.
#[cfg(doctest)]
#[doc = include_str!("../docs/src/library.md")]
struct LibraryPage;

#[cfg(doctest)]
#[doc = include_str!("../docs/src/repair.md")]
struct RepairPage;

#[cfg(doctest)]
#[doc = include_str!("../docs/src/tokens.md")]
struct TokensPage;
