//! Numbers for values: equal values have equal numbers, and who looks one up does not lock.
//!
//! `tests/interning/` runs the tables under all orders of threads.
//!
//! # Why not `DashMap`
//!
//! A new state is a dozen numbers. `DashMap` is made for values that come and go: there, each number cost
//! two hashes, a copy of its key and four locked instructions. A step and its mask take a sixth less time
//! with these tables. What several grammars share is still in `DashMap`s.

mod atomics;
pub(crate) mod index;
pub(crate) mod interner;
pub(crate) mod seen;
