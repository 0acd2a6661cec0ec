//! An allocator that counts: how many bytes are held, and the end of the process where a run holds too many.
//!
//! Counting is exact and the same on every machine, which the resident memory that an operating system
//! reports is not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, with every byte counted. A program makes it its `#[global_allocator]`.
#[derive(Debug)]
pub struct Meter;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CEILING: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The bytes that are held now.
pub fn held() -> usize {
    HELD.load(Relaxed)
}

/// The most bytes that were held at once since [`allow`], less those that were held then.
pub fn peak_since(before: usize) -> usize {
    PEAK.load(Relaxed).saturating_sub(before)
}

/// Lets the process hold so many bytes more than now, and returns what it holds now. An allocation beyond
/// that aborts the process.
pub fn allow(more: usize) -> usize {
    let now = held();
    PEAK.store(now, Relaxed);
    CEILING.store(now.saturating_add(more), Relaxed);
    now
}

/// Lifts the ceiling that [`allow`] set.
pub fn lift() {
    CEILING.store(usize::MAX, Relaxed);
}

fn take(bytes: usize) {
    let now = HELD.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    PEAK.fetch_max(now, Relaxed);
    if now > CEILING.load(Relaxed) {
        // The message allocates, too.
        lift();
        eprintln!(
            "finding: memory: {} MiB are held when {bytes} bytes are asked for",
            now >> 20
        );
        eprintln!("{}", std::backtrace::Backtrace::force_capture());
        std::process::abort();
    }
}

fn give(bytes: usize) {
    HELD.fetch_sub(bytes, Relaxed);
}

// SAFETY: every call is handed on to the system's allocator unchanged; counting touches no memory but three
// counters.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        give(layout.size());
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
