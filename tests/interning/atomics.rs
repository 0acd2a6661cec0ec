//! The atomics of `automata/src/pushdown/intern/atomics.rs`, replaced by loom's.

pub(crate) use loom::sync::Mutex;
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize};

use loom::sync::atomic::{AtomicBool, Ordering};

/// A cell that is filled once, with what the standard library's promises: who sees the value sees all that
/// was written before it. The tables fill one while they hold their lock, so that none is ever filled by two
/// threads at once.
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    is_filled: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock {
            is_filled: AtomicBool::new(false),
            value: std::sync::OnceLock::new(),
        }
    }
}

impl<T> OnceLock<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        self.is_filled
            .load(Ordering::Acquire)
            .then(|| self.value.get())
            .flatten()
    }

    pub(crate) fn get_or_init(&self, value: impl FnOnce() -> T) -> &T {
        if !self.is_filled.load(Ordering::Acquire) {
            let is_first = self.value.set(value()).is_ok();
            assert!(is_first, "two threads fill one cell");
            self.is_filled.store(true, Ordering::Release);
        }
        self.value.get().expect("the cell is filled")
    }
}
