//! Structured generation: grammars become exact token masks.
//!
//! ```text
//!  JSON Schema ─ schema ─┐
//!  regex ─────── regex ──┼─► grammar (one IR) ─► pushdown (lazy, byte-level) ─┐
//!  EBNF ────── notation ─┘                                                    ├─► mask ─► law ─► draft, verify
//!  tokenizer ─── vocab (tokens as bytes, a trie) ────────────────────────────┘
//! ```
//!
//! The library is pure: it does no I/O and reads no clock or environment. A [`Grammar`] is immutable and
//! shared between threads; the [`State`] of one sequence is a small copyable value, so a fork or a rollback
//! costs nothing.

#![forbid(unsafe_code)]

mod compile;
mod drawn;
mod receive;
pub mod repair;
pub mod verdict;

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
pub use lexiform_automata::work::{briefly, unless_cancelled};
#[cfg(feature = "law")]
pub use lexiform_law as law;

/// Problems of sources, with their places.
pub mod error {
    #[doc(inline)]
    pub use lexiform_automata::error::{CompileError, Diagnostics, Exhausted, Place, Problem, ProblemKind};
}

/// Limits on the cost of compilations and queries, and how to cancel either.
pub mod limits {
    #[doc(inline)]
    pub use lexiform_automata::limits::{Cancel, Limits, Meter};
}

/// Notations of grammars, and how a grammar is printed in another one.
pub mod grammar {
    #[doc(inline)]
    pub use lexiform_syntax::notation::{GrammarOptions, Notation, convert};
}

/// Dialects of regular expressions, and the spellings of JSON strings that match one.
pub mod regex {
    #[doc(inline)]
    pub use lexiform_syntax::regex::{Dialect, Escapes};
}

/// How JSON Schemas are read, and reports on how they are enforced.
pub mod schema {
    #[doc(inline)]
    pub use lexiform_syntax::schema::{
        AdditionalProperties, ArgumentStyle, Assertion, Draft, Enforced, Formats, Inclusion, KeyOrder,
        Numbers, Options, Refuse, Report, Whitespace, inclusion, report,
    };
}

/// Schemas in the parts of JSON Schema that providers and engines take, and values from their answers.
pub mod project {
    #[doc(inline)]
    pub use crate::drawn::{Contradiction, Tested, tested};
    #[doc(inline)]
    pub use crate::receive::{Received, Receiver, Rejected};
    #[doc(inline)]
    pub use lexiform_syntax::project::{
        Effect, Loss, Profile, Projection, Projector, Proof, Recoding, Relation, RestoreError, Toward,
        project, refusals,
    };
}

/// The formats in which models write thoughts and calls of tools.
///
/// # Examples
///
/// ```
/// use lexiform::tags::{AnswerShape, Tool, ToolChoice, for_model};
/// use serde_json::json;
///
/// let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let tools = [Tool { name: "weather".to_owned(), parameters }];
/// let shape = AnswerShape { thinks: false, is_parallel: false };
/// let tag = for_model("qwen_3_coder", &tools, &ToolChoice::Required, shape)?;
/// // Compiled as `Source::StructuralTag(&tag.to_string())`.
/// let begin = &tag["format"]["tags"][0]["begin"];
/// assert_eq!(*begin, "<tool_call>\n<function=weather>\n");
/// # Ok::<(), lexiform::error::CompileError>(())
/// ```
pub mod tags {
    #[doc(inline)]
    pub use lexiform_syntax::tags::{
        AnswerShape, ArgumentError, ArgumentReader, Tool, ToolChoice, for_model, model_formats,
        read_arguments, write_arguments,
    };
}

/// Answers of models: thoughts, content, calls of tools and the values of their arguments, read as they are
/// written, with and without a constraint.
///
/// # Examples
///
/// ```
/// use lexiform::answers::{AnswerFormat, EventKind, Events, Reading};
///
/// let format = AnswerFormat::of_model("qwen_3", &[], Reading::default())?;
/// let mut events = Events::new(format.into());
/// let mut found = events.push("Let me see. <tool_call>\n{\"name\": \"weather\", \"argum");
/// found.extend(events.push("ents\": {\"city\": \"Rome\"}}\n</tool_call>"));
/// found.extend(events.finish());
/// let kinds: Vec<&str> = found.iter().map(|event| event.kind.name()).collect();
/// assert_eq!(kinds, ["content", "call", "arguments", "opened", "key", "value", "call_end"]);
/// assert_eq!(found[1].kind, EventKind::Call("weather".to_owned()));
/// # Ok::<(), lexiform::error::CompileError>(())
/// ```
pub mod answers {
    #[doc(inline)]
    pub use lexiform_syntax::answer::{AnswerFormat, Event, EventKind, Events, Reading, Thought};
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

// The example in the README is a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// The examples in the docs are doc tests, too.
#[cfg(doctest)]
#[doc = include_str!("../docs/src/library.md")]
struct LibraryPage;

#[cfg(doctest)]
#[doc = include_str!("../docs/src/repair.md")]
struct RepairPage;

#[cfg(doctest)]
#[doc = include_str!("../docs/src/tokens.md")]
struct TokensPage;
