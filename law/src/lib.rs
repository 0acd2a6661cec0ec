//! How a constraint changes the distribution of a model: laws of sampling, drafts, and their verification.
//!
//! ```text
//!  logits, mask ─► law (which distribution is drawn from)
//!  drafts (trees of tokens) ─► verify (which of them the law accepts)
//!  monitor (constraints of a host, which may know no mask)
//! ```
//!
//! This crate depends on the grammar crates only for a vocabulary and a state; the rules themselves work on
//! rows of logits and sets of tokens. It is an interface between the crates of Lexiform: its releases follow
//! theirs, and any release may change it. Depend on `lexiform` instead.

#![forbid(unsafe_code)]
// The docs of modules are also for readers of the source.
#![allow(rustdoc::private_intra_doc_links)]

mod law;

pub mod draft;
pub mod verify;

pub mod monitor;

pub use law::{
    Allowed, Aprad, Ask, Attempt, ByRank, Ceiling, Chain, Chooser, Contrast, Contrastive, Cuts, Distribution,
    Drawn, Every, Fallback, History, Law, LawError, LawTag, LogWeight, Measured, Mirostat, MirostatVersion,
    Part, Particles, Place, Portion, Purpose, Resampling, Row, RowError, Rule, Sampler, Seeded, Sparse,
    SparsePart, Step, Table, TablePart, TokenProposal, Trie, TypicalAcceptance, Walk, Warper, Warping,
    Weight, Weighted, adaptive, asked, law_of, recursive,
};
