//! Numbers for values: equal values have equal numbers, and who looks one up does not lock.

pub(crate) mod index;
pub(crate) mod interner;
pub(crate) mod seen;
