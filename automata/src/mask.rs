//! Configuration × vocabulary → the tokens that may come next.
//!
//! A mask is the union over what a configuration can do next. Most of it is shared:
//!
//! ```text
//!   configuration ─ closure ─┬─ frame in a terminal   terminal mask (inner tokens + rests), shared by all grammars
//!                            │                          └ rests: where the terminal may end inside a token, what is left
//!                            │                            of the token is walked with the callers
//!                            ├─ frame in a key        the same, less the keys that were written before
//!                            ├─ frame of a validator  the same, but the rests are walked after words that it accepts
//!                            └─ frames of rules       a walk over the few subtrees of the trie that they allow
//! ```
//!
//! The mask of a terminal's state depends on its language and the vocabulary alone (`terminal`), so it is
//! found once, by the only walk that visits a large part of the trie, and that walk passes over subtrees that
//! no text of their characters can leave (`skip`). Walks for one mask (`walk`) look ahead with plain values
//! that are dropped with the mask; the few tokens for which that is not enough are judged one by one
//! (`compose`). What no token can see does not tell configurations apart, and what tokens hold is asked of
//! `token_facts`.
//!
//! Four more mechanisms were measured and taken out again, because they were worth 1.9 % of the mean of a
//! cold mask together: masks of states that take few bytes, without an identity; the tokens that other
//! readers left over, one by one; what a rule allows below a node, whoever called it; choices read by the
//! rules that they share.

mod cache;
mod compose;
mod end_states;
mod ground;
mod prime;
mod set;
mod skip;
mod stripes;
mod terminal;
mod token_facts;
mod walk;

pub use cache::Tables;
pub(crate) use compose::fill;
pub use set::Mask;
#[cfg(test)]
pub(crate) use stripes::STRIPES;
pub(crate) use stripes::Stripes;
pub(crate) use terminal::terminal_mask::Entry;
