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

pub mod compile;
pub mod repair;

pub use lexiform_automata::{error, grammar, limits, mask, matcher, vocab};
pub use lexiform_law::{draft, law, monitor, verify};
pub use lexiform_syntax::{notation, regex, schema, suggest, tags};

/// What a grammar becomes: a machine over bytes, and the regular languages in it.
pub mod machine {
    pub use lexiform_automata::language::{Automata, Cursor, Terminal, TerminalError};
    pub use lexiform_automata::pushdown::{Expected, Machine, TerminalSource, Way};
}

pub use compile::{Compiler, Options, Source, compile};
pub use lexiform_automata::error::{CompileError, Diagnostics, Exhausted};
pub use lexiform_automata::mask::Mask;
pub use lexiform_automata::matcher::{Ends, Grammar, Pool, Session, State};
pub use lexiform_automata::work::briefly;
pub use repair::{Repair, RepairError};

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
