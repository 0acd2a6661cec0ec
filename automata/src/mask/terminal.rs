//! What a state of a terminal allows, whatever grammar it stands in: found once for a vocabulary.
//!
//! ```text
//!   terminal mask    the tokens that stay within the language, and what is left of those that leave it
//!   length mask      the same near a bound of a counted language, for all bounds at once; token_lengths sorts tokens
//!   subtree mask     the same below one node of a trie
//!   *_walk           how each is found
//! ```

pub(super) mod length_mask;
mod length_walk;
mod places;
pub(super) mod subtree_mask;
mod subtree_walk;
pub(super) mod terminal_mask;
mod terminal_walk;
pub(super) mod token_lengths;
