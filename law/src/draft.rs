//! Drafts: tokens guessed ahead, for the model to check in one pass.
//!
//! ```text
//!   Text (prompt, answer) ─┐
//!                          ├─► Drafter ─ offer(token) ─► Draft ──► rows of the model ──► verify
//!   Constraint, state ─────┘            refused if the constraint forbids it
//! ```
//!
//! A [`Drafter`] offers tokens; the [`Draft`] takes a token only if the constraint allows it after those
//! before it, so no drafter can propose what the mask would reject, and each node carries the constraint's
//! state after it. A draft is a tree: [`Draft::offer`] continues below the last node, [`Draft::offer_below`]
//! below any.
//!
//! Drafters that learn consist of two parts: a [`Predictor`] predicts the tokens that may come next, a
//! [`Shape`] chooses which of them are drafted.
//!
//! A drafter may use any information if it offers tokens as chosen without chance ([`Proposal::Point`]):
//! these are verified by drawing once, and a draft model may even draw them with the random numbers that the
//! target will use, so that it guesses the very same token where both models agree about a row. A token
//! offered as [`Proposal::Sampled`] must have been drawn with separate random numbers, from the row that is
//! offered with it; [`verify`](crate::verify) gives the other conditions.

mod constraint;
mod drafter;
mod forced;
mod jacobi;
mod lookup;
mod predict;
mod shape;
mod tree;

pub use constraint::Constraint;
pub use drafter::{Drafter, Text};
pub use forced::{Forced, LongestMatch, Tokenise};
pub use jacobi::JacobiWindow;
pub use lookup::{Lookup, PromptLookup};
pub use predict::{
    Candidate, Combined, Consensus, Context, CorpusError, Layer, NGrams, Observation, Phrases, Predictor,
    Recycling, Retrieval, StateKeyed, Suffixes, Trigram, Union,
};
pub use shape::{BestFirst, Chain, Here, OptTree, Sampled, Sequoia, Shape, Stop, Template};
pub use tree::{Draft, Node, NodeId, Origin, Proposal};
