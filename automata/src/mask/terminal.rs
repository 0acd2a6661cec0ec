//! The tokens that a state of a terminal allows, independent of the grammar: computed once per vocabulary.
//!
//! ```text
//!   terminal mask    the tokens that stay within the language, and the rests of those that leave it
//!   length mask      as above near a bound of a counted language, for all bounds at once
//!   token lengths    the tokens by number of characters, for length masks
//!   subtree mask     as above, below one node of a trie
//!   *_walk           computes each of them
//! ```

pub(super) mod length_mask;
mod length_walk;
mod places;
pub(super) mod subtree_mask;
mod subtree_walk;
pub(super) mod terminal_mask;
mod terminal_walk;
pub(super) mod token_lengths;
