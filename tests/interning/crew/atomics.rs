//! The atomics and threads of `engine/src/torch/crew/atomics.rs`, as loom has them.

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::Mutex;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
pub(crate) use loom::thread::{Builder, JoinHandle, park, yield_now};
