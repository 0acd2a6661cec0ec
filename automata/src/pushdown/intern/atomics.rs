//! What the tables are made of that threads share. `tests/interning/` puts loom's in their place and tries
//! all orders.

pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize};
pub(super) use std::sync::{Mutex, OnceLock};
