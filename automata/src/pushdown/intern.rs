//! Numbers for values: equal values have equal numbers, and who looks one up does not lock.

mod atomics;
pub(crate) mod index;
pub(crate) mod interner;
pub(crate) mod seen;
