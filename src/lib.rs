//! Structured generation: grammars become exact token masks.
//!
//! ```text
//!  JSON Schema ─ schema ─┐
//!  regex ─────── regex ──┼─► grammar (one IR) ─► pushdown (lazy, byte-level) ─┐
//!  EBNF ────── notation ─┘                                                    ├─► mask ─► law ─► draft, verify
//!  tokenizer ─── vocab (tokens as bytes, a trie) ────────────────────────────┘
//! ```
//!
//! The library is pure: no I/O, no clock, no environment. A [`Grammar`] is immutable and shared between
//! threads; the [`State`] of one sequence is a small copyable value, so a fork or a rollback costs nothing.

#![forbid(unsafe_code)]

mod compile;
pub mod repair;

pub use compile::{Compiler, Options, Source, compile};
#[doc(inline)]
pub use lexiform_automata::mask::Mask;
#[doc(inline)]
pub use lexiform_automata::matcher::{
    BatchRow, DraftTree, Ends, Explanation, Grammar, MaskRequest, Pool, Session, SessionError, State,
    TreeError,
};
#[doc(inline)]
pub use lexiform_automata::pushdown::{Expected, Way};
#[doc(inline)]
pub use lexiform_automata::work::briefly;
#[cfg(feature = "law")]
pub use lexiform_law as law;

/// Problems of sources, with their places.
pub mod error {
    #[doc(inline)]
    pub use lexiform_automata::error::{CompileError, Diagnostics, Exhausted, Place, Problem, ProblemKind};
}

/// Bounds of what a compile and a question may cost, and how either is called off.
pub mod limits {
    #[doc(inline)]
    pub use lexiform_automata::limits::{Cancel, Limits, Meter};
}

/// Dialects of regular expressions, and how JSON strings that match one are spelled.
pub mod regex {
    #[doc(inline)]
    pub use lexiform_syntax::regex::{Dialect, Escapes};
}

/// How JSON Schemas are read, and what is reported of them.
pub mod schema {
    #[doc(inline)]
    pub use lexiform_syntax::schema::{
        AdditionalProperties, Assertion, Draft, Enforced, Formats, KeyOrder, Numbers, Options, Refuse,
        Report, Whitespace, report,
    };
}

/// Vocabularies: the tokens of models as bytes, and the files that they are read from.
pub mod vocab {
    #[doc(inline)]
    pub use lexiform_automata::vocab::{
        Healed, ReadLimits, TextStream, TokenKind, TokenizerFile, Vocabulary, VocabularyError, from_tiktoken,
        from_tokenizer_json,
    };
    #[cfg(feature = "tokenizers")]
    #[doc(inline)]
    pub use lexiform_automata::vocab::{Tokenizer, TokenizerError};
}

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
