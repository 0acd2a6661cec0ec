//! Interning: equal values have equal numbers, and look-ups do not lock.
//!
//! `tests/interning/` runs the tables under all interleavings of threads.
//!
//! # Why not `DashMap`
//!
//! A new state takes a dozen numbers. `DashMap` is made for values that come and go: with it, each number
//! cost two hashes, a copy of its key and four locked instructions. A step and its mask take a sixth less
//! time with these tables. Data that several grammars share is still in `DashMap`s.

mod atomics;
pub(crate) mod index;
pub(crate) mod interner;
pub(crate) mod seen;
