//! The layers of a decoder, and the kernels that they are computed by.
//!
//! ```text
//!   layer ─┬─ attention ─┬─ together: many sequences, by a kernel of torch        over the paged cache
//!          │             └─ fused: few tokens, on the CPU, by loops of our own
//!          └─ mlp: one network, or experts ── linear: matrices and norms
//! ```

pub(crate) mod attention;
pub(crate) mod cache;
pub(crate) mod fused;
pub(crate) mod kernel;
pub(crate) mod layer;
pub(crate) mod layout;
pub(crate) mod linear;
pub(crate) mod mlp;
pub(crate) mod together;
pub(crate) mod upload;
