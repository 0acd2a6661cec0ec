//! The engine's own loops for CPUs, which compute in `f32` what torch would compute in more steps, or more
//! slowly.
//!
//! ```text
//!   product ─┬─ tiles: numbers as they are ──────────────┬─ lanes: vectors by the processor's instructions
//!            ├─ block_product, blocks: blocks of few bits ┘
//!            └─ matrix, block_matrix: the matrices, as they are stored, in eight bits, or in blocks
//!   fused: the small steps between products
//! ```
//!
//! With these loops a decoded token has the same numbers whatever else is in the pass. The keys and values of
//! a long prompt depend in the last digit on how the scheduler cut it into pieces, unless the model was
//! loaded batch-invariant (`LoadOptions::batch_invariant`), because torch computes the attention of long
//! prompts.
//!
//! Tests: `engine/tests/engine/company.rs` and `eight_bits.rs`.

pub(crate) mod block_matrix;
mod block_product;
mod blocks;
pub(crate) mod e4m3;
pub(crate) mod fused;
pub(crate) mod lanes;
pub(crate) mod matrix;
pub(crate) mod product;
mod tiles;
