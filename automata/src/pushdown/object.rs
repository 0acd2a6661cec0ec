//! Lists of items: arrays and objects, their properties, their additional keys, and the record of the items
//! written so far.
//!
//! ```text
//!   progress     the data that a list remembers: items written, how many, with which keys
//!   next_key     the keys of the properties as one automaton, read together up to their common prefix
//!   contains     demands, each of which some number of items must meet
//!   count_table  the counts that a choice of items can reach
//!   key_set      sets of keys; used_keys caches the set of the last list
//!   *_frame      the frames of these, with their steps and calls
//! ```

pub(crate) mod contains;
mod count_table;
mod key_frame;
pub(crate) mod key_set;
mod list_frame;
mod missing;
pub(crate) mod next_key;
mod next_key_frame;
pub(crate) mod progress;
pub(crate) mod used_keys;
