//! The view that a grammar has of a sequence: the state after a token, and the tokens that may or must come
//! next.
//!
//! ```text
//!   token drawn ─► outlook: state, end of text ─► drafters: forced and copied tokens ─► masks of all rows
//! ```
//!
//! All inputs and outputs are plain data ([`outlook`], [`reply`]), so any thread can do the work.

pub(crate) mod drafters;
mod drawn;
pub(crate) mod left;
pub(crate) mod masks;
pub(crate) mod outlook;
pub(crate) mod reply;
