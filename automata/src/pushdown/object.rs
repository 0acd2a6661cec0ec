//! Lists of items: arrays and objects, their properties, their additional keys, and the record of the items
//! written so far.
//!
//! ```text
//!   progress     what a list remembers: items written, how many, with which keys
//!   next_key     the keys of the properties as one automaton, read together as far as they begin alike
//!   contains     a demand, which some number of the items must meet
//!   key_set      sets of keys; used_keys is that of the list asked for last
//!   *_frame      how the frames of these go on
//! ```

pub(crate) mod contains;
mod key_frame;
pub(crate) mod key_set;
mod list_frame;
pub(crate) mod next_key;
mod next_key_frame;
pub(crate) mod progress;
pub(crate) mod used_keys;
