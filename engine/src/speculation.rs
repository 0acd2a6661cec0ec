//! Speculative decoding: drafts as a tree of tokens, and how many of them a pass feeds.
//!
//! Who proposes drafts depends on what is known of a sequence: the [drafters](crate::grammar::drafters) on
//! its text and its grammar, the draft model, which reads it, on the sequence itself
//! (`engine/draft_model.rs`).

pub(crate) mod class;
pub(crate) mod draft;
pub(crate) mod journal;
pub(crate) mod policy;
pub(crate) mod store;
pub(crate) mod window;
