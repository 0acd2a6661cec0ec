//! Frames and configurations between which no token can tell.
//!
//! An object with open keys is in another state after each of its members, since it remembers which keys it
//! has. And yet what may come next is the same: no token ends a value, separates it from the next member and
//! writes that member's key. So each state has one that is *like* it, in which only what tokens can see is
//! remembered, and masks are found for those. Of the masks that had been made of texts of JSON, three in four
//! had been there before, in another state.
//!
//! ```text
//!   {"name": "x", "id": 1, "tags": [│        written: name, id     ┐
//!   {"name": "x", "kind": 2, "tags": [│      written: name, kind   ├─ like: written: whatever is no token
//!   {"tags": [│                              written: –            ┘
//! ```
//!
//! What tokens can see is asked of the vocabulary (`Sight`):
//!
//! - A key that was used is seen by tokens that hold all of it, or complete it if it is being written. Others
//!   are forgotten, where more keys than any number of them are left.
//! - After an item, a member is seen by tokens that hold something of its separator, and later the byte with
//!   which members open and the one that follows it in this one. Of all that are not seen it is enough to
//!   know whether some may be written, and whether one must be.
//! - Where other keys may begin like the key of a member, that it may be written is not seen before it ends.
//!
//! And a rule in progress is like every other that goes on with the same (`suffixes`).
//!
//! States are compared by this for masks alone; texts are read in the states that they lead to.
//!
//! Which state is the same as one of another process, its [name](name) tells.

mod classes;
mod configurations;
mod frames;
mod hidden;
mod name;
mod suffix;
mod token_facts;

pub(crate) use classes::{Classes, Equivalence};
pub(crate) use token_facts::TokenFacts;
