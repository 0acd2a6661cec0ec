//! Frames and configurations that no token can tell apart.
//!
//! An object with open keys is in another state after each of its properties, since it remembers its keys.
//! Yet the same may come next: no token ends a value, separates it from the next property and writes the key
//! of that property. So each state has a *representative*, which remembers only what tokens can see, and
//! masks are computed for representatives. Of the masks that had been computed for texts of JSON, three in
//! four had been computed before, in another state.
//!
//! ```text
//!   {"name": "x", "id": 1, "tags": [│        written: name, id     ┐
//!   {"name": "x", "kind": 2, "tags": [│      written: name, kind   ├─ one representative
//!   {"tags": [│                              written: –            ┘
//! ```
//!
//! The vocabulary determines what tokens can see ([`TokenFacts`]):
//!
//! - A used key is seen by tokens that contain all of it, or that complete it if it is being written. Other
//!   used keys are forgotten, if the keys of the list never run out.
//! - After an item, a property is seen by tokens that contain part of the separator, then the byte with which
//!   properties open, and then the next byte of this property. Of the properties that are not seen, it
//!   suffices to know whether some may be written, and whether one must be.
//! - If other keys may begin like the key of a property, tokens do not see before its end that it may be
//!   written.
//!
//! A rule in progress is equivalent to every other one with the same continuation (`suffix`).
//!
//! Representatives are used for masks alone; texts are read in the states that they lead to.
//!
//! A state's [name](name) identifies it across processes.

mod classes;
mod configurations;
mod frames;
mod hidden;
mod name;
mod suffix;
mod token_facts;

pub(crate) use classes::{Classes, Equivalence};
pub(crate) use token_facts::TokenFacts;
