//! Drafts: tokens guessed ahead, for the model to check in one pass.
//!
//! ```text
//!   Text (prompt, answer) ─┐
//!                          ├─► Drafter ─ offer(token) ─► Draft ──► rows of the model ──► verify
//!   Constraint, state ─────┘            refused if the constraint forbids it
//! ```
//!
//! A [`Drafter`] offers tokens; the [`Draft`] takes one only if the constraint allows it after those before
//! it, so no drafter can propose what the mask would reject, and each node carries the constraint's state
//! after it. A draft is a tree: [`Draft::offer`] goes on below the last node, [`Draft::offer_below`] below
//! any.
//!
//! Drafters that learn are made of two parts: a [`Predictor`] says what may come next at a place, a [`Shape`]
//! which of it is drafted.
//!
//! What a drafter looks at is its own affair, if it offers tokens as chosen without chance
//! ([`Proposal::Point`]): these are verified by drawing once, and a draft model may even draw them with the
//! random numbers that the target will use, so that it guesses the very token where both models agree about a
//! row. A token offered as [`Proposal::Sampled`] must have been drawn with random numbers of its own, from
//! the row that is offered with it; [`verify`](crate::verify) says what else.

mod constraint;
mod drafter;
mod forced;
mod jacobi;
mod lookup;
mod predict;
mod shape;
mod tree;
mod turns;

pub use constraint::Constraint;
pub use drafter::{Drafter, Text};
pub use forced::{Forced, LongestMatch, Tokenise};
pub use jacobi::JacobiWindow;
pub use lookup::{Lookup, PromptLookup};
pub use predict::{
    Candidate, Combined, Consensus, Context, CorpusError, Layer, NGrams, Observation, Phrases, Predictor,
    Recycling, Retrieval, StateKeyed, Suffixes, Trigram, Union,
};
pub use shape::{BestFirst, Chain, OptTree, Predicted, Sequoia, Shape, Stop, Template};
pub use tree::{Draft, Node, NodeId, Origin, Proposal};
pub use turns::InTurn;
