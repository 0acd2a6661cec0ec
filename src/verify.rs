//! Verification: how much of a draft the law keeps.
//!
//! One pass of the model gives the row of every prefix of a drafted chain. [`chain`] draws from the law once at each prefix
//! and goes on while the draw equals the drafted token:
//!
//! ```text
//!   draft      a     b     c
//!   rows    r0    r1    r2    r3          drawn: a b d     accepted 2, and d is a token of the law like any other
//!            a=a   b=b   d≠c  (unused)    all three equal: the draw from r3 comes on top
//! ```
//!
//! **Exact by construction.** Each token is a draw from the law at its prefix; the draft only decides whether the row after
//! it is already there. The draws are those that would have been made without a draft, at the same places, so with a seed
//! the answer is the same token for token, under every law of [`law`](crate::law), for drafts of every origin. A token
//! with probability `q` under the law is accepted with probability `q`, the best possible for a token chosen without chance.
//!
//! For tokens that a draft model *sampled*, [`residual`] accepts more. It has a condition that drawing once does not have.
//!
//! **The predictability condition.** Whether a sampled token is offered to [`residual`], and in which order, may depend on
//! anything except that token and those after it. To stop *after* a token because its `q` was low is fine if it is
//! still offered; to drop it makes the law a different one. Entropy, the largest probability and the state of the
//! constraint are always fine to look at.

mod chain;
mod residual;

pub use chain::{Next, Verified, chain};
pub use residual::{Judged, residual};
