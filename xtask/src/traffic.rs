//! Commands that speak HTTP to a running service: many clients at once, heavy ones beside a light one, hostile ones.

pub(crate) mod attack;
pub(crate) mod fair;
pub(crate) mod load;
