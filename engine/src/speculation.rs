//! Speculative decoding: drafts as a tree of tokens, and how many of them a pass feeds.
//!
//! The source of a draft depends on the information that it needs: the [drafters](crate::grammar::drafters)
//! need the text of a sequence and its grammar, the draft model reads the sequence itself
//! (`engine/draft_model.rs`).

pub(crate) mod class;
pub(crate) mod draft;
pub(crate) mod draws;
pub(crate) mod journal;
pub(crate) mod policy;
pub(crate) mod row;
pub(crate) mod shaping;
pub(crate) mod store;
pub(crate) mod window;
