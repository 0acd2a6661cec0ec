//! The layers of a decoder, and the code that computes them.
//!
//! ```text
//!   layer ─┬─ attention ─┬─ together: many sequences, by a kernel of torch        over the paged cache
//!          │             └─ look: few tokens, on the CPU, by the engine's own loops
//!          └─ mlp: network or experts ── linear: matrices and norms ─┬─ product: on the CPU, by own loops
//!                                                                    └─ matrix: as it is stored, in eight
//!                                                                       bits, or in blocks
//! ```

pub(crate) mod attention;
pub(crate) mod cache;
pub(crate) mod kernel;
pub(crate) mod layer;
pub(crate) mod layout;
pub(crate) mod linear;
pub(crate) mod look;
pub(crate) mod mlp;
pub(crate) mod together;
pub(crate) mod upload;
