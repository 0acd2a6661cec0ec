//! Machine × vocabulary → the tokens that may come next.
//!
//! A mask is the union over what a configuration can do next. Most of it is shared:
//!
//! ```text
//!   configuration ─ fringe ─┬─ terminal frame   factor (inner tokens + rests), shared by all grammars
//!                           │                     └ rests: where the terminal may end inside a token, what is left
//!                           │                       of the token is walked with the callers
//!                           ├─ key frame        the same, less the keys that were written before
//!                           ├─ judged frame     the same, but the rests are walked behind words that the judge accepts
//!                           └─ rule frames      a walk over the few branches of the trie that they allow
//! ```
//!
//! The factor of a terminal state depends on its language and the vocabulary alone, so it is found once, by the only
//! walk that visits a large part of the trie. It passes over subtrees that lead back to the state (`loops`), and those
//! that no text of their characters can leave (`lasting`). States that differ in few tokens are found by their difference
//! (`factor`), or only in long ones (`near`), those near a bound by a `profile`, and those that take few bytes without a name for their language (`narrow`).
//! What no token can see does not tell states apart (`sight`). Walks look ahead with threads, which remember nothing, and know what
//! terminals (`branch`) and rules (`passage`) allow where they have been before; the
//! few tokens for which that is not enough are judged one by one.

mod branch;
mod cache;
mod compose;
mod factor;
mod landing;
mod lasting;
mod lengths;
mod loops;
mod narrow;
mod near;
mod notes;
mod passage;
mod profile;
mod set;
mod sight;
mod stripes;
mod walk;

pub use cache::Tables;
pub(crate) use compose::fill;
pub(crate) use factor::Entry;
pub(crate) use landing::Landings;
pub(crate) use passage::Passages;
pub use set::Mask;
#[cfg(test)]
pub(crate) use stripes::STRIPES;
pub(crate) use stripes::Stripes;
