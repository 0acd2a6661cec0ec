//! Commands that speak HTTP to a running service: many clients at once, some of which want many texts, heavy
//! ones beside a light one, hostile ones.

pub(crate) mod attack;
pub(crate) mod crowd;
pub(crate) mod fair;
pub(crate) mod load;
