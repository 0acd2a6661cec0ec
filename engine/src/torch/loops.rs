//! Loops of our own for processors, which compute in `f32` what torch would compute in more steps, or slower.
//!
//! ```text
//!   product ─┬─ tiles: numbers as they are ──────────────┬─ lanes: vectors by the instructions of each kind of processor
//!            ├─ block_product, blocks: blocks of few bits ┘
//!            └─ matrix, block_matrix: what is multiplied with, as it is stored, in eight bits, or in blocks
//!   fused: the small steps between products
//! ```

pub(crate) mod block_matrix;
mod block_product;
mod blocks;
pub(crate) mod e4m3;
pub(crate) mod fused;
pub(crate) mod lanes;
pub(crate) mod matrix;
pub(crate) mod product;
mod tiles;
