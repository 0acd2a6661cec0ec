//! The synchronisation primitives of the tables. `tests/interning/` replaces them with loom's and explores
//! all interleavings.

pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize};
pub(super) use std::sync::{Mutex, OnceLock};
