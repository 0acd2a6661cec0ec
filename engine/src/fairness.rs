//! What owners share, however much each of them brings: threads and places.

pub(crate) mod pool;
pub(crate) mod room;
