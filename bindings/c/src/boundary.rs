//! What crosses between C and Rust: texts, buffers, handles, and panics, which do not.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call came to, as `lexiform_status` has it.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// A token may not come next.
    NotAllowed = 1,
    /// The answer would have cost more than the limits of the grammar allow.
    Exhausted = 2,
    /// A null pointer, a state of another grammar, or a buffer that is too short.
    Invalid = 3,
    /// A mistake of this library; nothing can be said of the handles that the call was given.
    Panic = 4,
}

/// Does something, with a value to return where it panics.
pub(crate) fn guarded<T>(panicked: T, work: impl FnOnce() -> T) -> T {
    // Handles are behind locks and atomics that know of poisoning, or belong to one caller at a time.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(panicked)
}

/// The value behind a pointer.
///
/// # Safety
/// The pointer is null, or points to a value that lives as long as the call.
pub(crate) unsafe fn value<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }
}

/// Whether a buffer can have this many entries at all.
fn is_possible<T>(len: usize) -> bool {
    len.checked_mul(size_of::<T>())
        .is_some_and(|bytes| isize::try_from(bytes).is_ok())
}

/// A buffer of C to read from. An empty one may be null.
///
/// # Safety
/// The pointer is null, or the buffer has this many entries for as long as the call.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, len: usize) -> Option<&'a [T]> {
    match (pointer.is_null() || !is_possible::<T>(len), len) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: as the caller promises.
        (false, _) => Some(unsafe { std::slice::from_raw_parts(pointer, len) }),
    }
}

/// A buffer of C to write to.
///
/// # Safety
/// As for [`slice`], and nobody else uses the buffer during the call.
pub(crate) unsafe fn slice_mut<'a, T>(pointer: *mut T, len: usize) -> Option<&'a mut [T]> {
    match (pointer.is_null() || !is_possible::<T>(len), len) {
        (_, 0) => Some(&mut []),
        (true, _) => None,
        // SAFETY: as the caller promises.
        (false, _) => Some(unsafe { std::slice::from_raw_parts_mut(pointer, len) }),
    }
}

/// A value as a handle of C.
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

/// A text as a string of C, which [`lexiform_string_free`] frees. What stands after a zero byte is cut off.
pub(crate) fn string(text: &str) -> *mut c_char {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).map_or(std::ptr::null_mut(), CString::into_raw)
}

/// Hands a text out through a pointer, unless nobody wants it.
///
/// # Safety
/// The pointer is null or may be written to.
pub(crate) unsafe fn hand_out(place: *mut *mut c_char, text: &str) {
    if !place.is_null() {
        // SAFETY: as the caller promises.
        unsafe { *place = string(text) };
    }
}

/// The version of the library. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn lexiform_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Frees a string that this library handed out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_string_free(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: the header demands a string of this library, freed once.
        drop(unsafe { CString::from_raw(string) });
    }
}
