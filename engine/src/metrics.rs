//! What the engine measures of itself: counts, and how long things take.

pub(crate) mod histogram;
pub(crate) mod meters;
pub(crate) mod stats;
