//! What a grammar says about a sequence: where a token leads, what may come next, what must come next.
//!
//! ```text
//!   token drawn ─► outlook: state, whether the text ends ─► drafters: forced and copied tokens ─► masks of all rows
//! ```
//!
//! All of it is plain data in and out ([`outlook`], [`reply`]), so that any thread can do the work.

pub(crate) mod drafters;
pub(crate) mod masks;
pub(crate) mod outlook;
pub(crate) mod reply;
