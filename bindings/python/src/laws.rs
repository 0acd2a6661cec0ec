//! The laws of the library over rows of logits that the caller's model computes.
//!
//! ```text
//!   Sampler    one text, a token at a time; some laws go back:   token token restart token … end
//!   Particles  a population of weighted texts:                   rows ─► next ─► tilt ─► resample ─► rows …
//!   Chain      a text that is changed step by step:              propose ─► next … next ─► accepted, or not
//!   weighted_token   one token, of a constraint that has no mask
//! ```
//!
//! `setting.rs` has what the texts of one object share: the grammar, the warping of rows and the bounds of an
//! answer. `monitors.rs` has further constraints, such as functions of Python. `text.rs` has a text that is
//! being drawn. `warping.rs` reads the keywords that change rows, which all three classes take, and
//! `arguments.rs` those of a law.

mod arguments;
mod chain;
mod monitors;
mod particles;
mod sampler;
mod setting;
mod text;
mod trie;
mod warping;
pub(crate) mod weighted_token;

pub(crate) use chain::Chain;
pub(crate) use particles::Particles;
pub(crate) use sampler::Sampler;
pub(crate) use text::Step;
pub(crate) use trie::Trie;
