//! The synchronisation primitives of a crew. `tests/interning/` replaces them by loom's, and tries all
//! orders.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
pub(crate) use std::thread::{Builder, JoinHandle, park, yield_now};
