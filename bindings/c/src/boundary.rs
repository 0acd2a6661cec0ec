//! The boundary between C and Rust: texts, buffers and handles cross it, and panics do not.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The outcome of a call, `lexiform_status` in C.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// A token may not come next.
    NotAllowed = 1,
    /// The answer would cost more than the limits of the grammar allow.
    Exhausted = 2,
    /// A null pointer, a state of another grammar, or a buffer that is too short.
    Invalid = 3,
    /// A bug in this library; the handles passed to the call are in an unknown state.
    Panic = 4,
}

/// Runs `work`, and returns `panicked` if it panics.
pub(crate) fn guarded<T>(panicked: T, work: impl FnOnce() -> T) -> T {
    // Handles are protected by locks and atomics that handle poisoning, or belong to one caller at a time.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(panicked)
}

/// Returns the value behind a pointer; `None` for a null pointer.
///
/// # Safety
/// The pointer is null, or points to a value that lives as long as the call.
pub(crate) unsafe fn value<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }
}

/// Returns `true` if a buffer can have this many entries at all.
fn is_possible<T>(len: usize) -> bool {
    len.checked_mul(size_of::<T>())
        .is_some_and(|bytes| isize::try_from(bytes).is_ok())
}

/// Returns a C buffer for reading. An empty one may be null.
///
/// # Safety
/// The pointer is null, or the buffer has this many entries for the duration of the call.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, len: usize) -> Option<&'a [T]> {
    match (pointer.is_null() || !is_possible::<T>(len), len) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: as the caller promises.
        (false, _) => Some(unsafe { std::slice::from_raw_parts(pointer, len) }),
    }
}

/// Returns a C buffer for writing.
///
/// # Safety
/// As for [`slice`], and nothing else uses the buffer during the call.
pub(crate) unsafe fn slice_mut<'a, T>(pointer: *mut T, len: usize) -> Option<&'a mut [T]> {
    match (pointer.is_null() || !is_possible::<T>(len), len) {
        (_, 0) => Some(&mut []),
        (true, _) => None,
        // SAFETY: as the caller promises.
        (false, _) => Some(unsafe { std::slice::from_raw_parts_mut(pointer, len) }),
    }
}

/// Moves a value to the heap and returns it as a C handle.
pub(crate) fn handle<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Frees a handle.
///
/// # Safety
/// The pointer is null, or came from [`handle`] and was not freed.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: as the caller promises.
        guarded((), || drop(unsafe { Box::from_raw(pointer) }));
    }
}

/// Returns a text as a C string, which [`lexiform_string_free`] frees. The text is cut off at a zero byte.
pub(crate) fn string(text: &str) -> *mut c_char {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).map_or(std::ptr::null_mut(), CString::into_raw)
}

/// Writes a text through a pointer, unless the pointer is null.
///
/// # Safety
/// The pointer is null or may be written to.
pub(crate) unsafe fn hand_out(place: *mut *mut c_char, text: &str) {
    if !place.is_null() {
        // SAFETY: as the caller promises.
        unsafe { *place = string(text) };
    }
}

/// Returns the version of the library. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn lexiform_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Frees a string that this library returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_string_free(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: the header demands a string of this library, freed once.
        drop(unsafe { CString::from_raw(string) });
    }
}
