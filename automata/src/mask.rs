//! Computes the tokens that may come next from a configuration and a vocabulary.
//!
//! A mask is the union over everything that a configuration can do next. Most of it is shared:
//!
//! ```text
//!   configuration ─ closure ─┬─ frame in a terminal   terminal mask (inner tokens + rests), of all grammars
//!                            │                          └ rests: if the terminal may end inside a token, the
//!                            │                            rest of the token is walked with the callers
//!                            ├─ frame in a key        likewise, without the keys that were written before
//!                            ├─ frame of a validator  likewise, with rests walked only after accepted words
//!                            └─ frames of rules       a walk of the few subtrees of the trie that they allow
//! ```
//!
//! The mask of a terminal's state depends on its language and the vocabulary alone (`terminal`), so it is
//! computed once, by the only walk that visits a large part of the trie. That walk skips subtrees whose
//! characters cannot leave the language (`skip`). Walks for one mask (`walk`) look ahead with plain values
//! that are dropped with the mask; the few tokens that this cannot decide are judged one by one (`compose`).
//! Configurations that no token can tell apart are not distinguished; `token_facts` provides the contents of
//! the tokens for that.
//!
//! Four more mechanisms were measured and removed, because together they saved only 1.9 % of the mean time of
//! a cold mask: masks of states that take few bytes, without an id; the tokens that other parses left
//! over, one by one; what a rule allows below a node, whoever called it; choices read by the rules that they
//! share.

mod cache;
mod compose;
mod end_states;
mod ground;
mod prime;
mod set;
mod skip;
mod specials;
mod stripes;
mod terminal;
mod token_facts;
mod walk;

pub use cache::Tables;
pub(crate) use compose::fill;
pub use set::Mask;
pub(crate) use specials::Specials;
#[cfg(test)]
pub(crate) use stripes::STRIPES;
pub(crate) use stripes::Stripes;
pub(crate) use terminal::terminal_mask::Entry;
