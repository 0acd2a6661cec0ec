//! Fair sharing between owners, however much work each of them brings: threads and places.

pub(crate) mod pool;
pub(crate) mod room;
