//! An allocator that counts the bytes that each thread holds, and their maximum, on top of the allocator that
//! bounds the memory of the whole process.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use crate::found::meter::Meter;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // While a thread ends, its counter no longer exists.
    let held = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        held.get()
    });
    if let Ok(held) = held {
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held)));
    }
}

// SAFETY: every call is handed on to the allocator below as it is; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those that the allocator below asks for.
        unsafe { Meter.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { Meter.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old and the new allocation may exist at the same time.
        count(size as isize);
        // SAFETY: as above.
        let moved = unsafe { Meter.realloc(pointer, layout, size) };
        count(-(layout.size() as isize));
        moved
    }
}

/// Returns the result of some work, and the maximum number of bytes that it held at a time on this thread.
pub(crate) fn most_held<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, usize::try_from(PEAK.get() - before).unwrap_or(0))
}
