//! Measurements of the engine: counts, and durations.

pub(crate) mod histogram;
pub(crate) mod meters;
pub(crate) mod stats;
