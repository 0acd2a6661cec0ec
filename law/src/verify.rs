//! Verification: how much of a draft the law keeps.
//!
//! One pass of the model gives the row of every prefix of a drafted tree. [`tree`] chooses one token at each
//! prefix, by a rule that has the law there, and descends to the child that has this token:
//!
//! ```text
//!   draft        ┌─ b ── d        rows of ε, a, ab, abd, ac
//!           ε ── a
//!                └─ c             chosen: a, c, e      accepted 2, and e is a token of the law like any other
//! ```
//!
//! A chain is a tree in which every node has one child. The way in which the children of a node were chosen
//! determines the rule that judges them:
//!
//! | children | rule | accepted at a node, if `p` is the law there |
//! |---|---|---|
//! | chosen without chance | *draw once*: draw from `p`; descend if a child has the token | `Σ p` of the children |
//! | sampled, the only one | *residual*: accept with `min(1, p/q)`, or else draw from `norm(max(0, p − q))` | `Σ min(p, q)` |
//! | sampled, several | *without replacement*: the residual rule for one after the other, see [`residual`] | more |
//! | sampled independently from one row | *k-seq*, see [`k_seq`] | about as much as without replacement |
//! | sampled independently from several rows | the residual rule for one after the other, each with its whole row | |
//! | some of each | those that were sampled first; the draw from what is left decides among the others | |
//!
//! **Exact.** Each token chosen has the law at its prefix; the draft only decides whether the row after it is
//! already there. Drawing once uses the random numbers of undrafted decoding, at the same places, so with a
//! seed the answer is the same token for token, under every law of [`law`](crate::law), for drafts of every
//! origin. The other rules accept more of what a draft model samples; they use other numbers, so the same
//! seed gives another text of the same law.
//!
//! **Lossy.** A walk with lossy acceptance ([`Walk::lossy`](crate::law::Walk::lossy)) accepts the first child
//! that is [typical](crate::law::TypicalAcceptance), however it was chosen. Its text has another law, as its
//! tag says.
//!
//! **Samplers that draw more than a token.** Under the global law the draw of a token also decides whether
//! the attempt survives, and descends a trie. There every child is judged by drawing once, sampled ones too
//! ([`Sampler::next_by`](crate::law::Sampler::next_by)): that is exact for any child, and accepts less.
//!
//! **The predictability condition.** The decisions whether a *sampled* token is offered, among which
//! siblings, and in which order they are tried, may depend on anything except that token, siblings drawn
//! after it and what is below them. Stopping *after* a token because its `q` was low is fine if it is still
//! offered; dropping it changes the law. Decisions may always depend on the entropy, the largest probability
//! and the state of the constraint before the token. Tokens chosen without chance may be dropped and ordered
//! at will.

mod k_seq;
mod residual;
mod tree;

pub use k_seq::k_seq;
pub use residual::{Judged, residual};
pub use tree::{Next, Verified, down, tree};
