//! Masks in the memory of JavaScript: rows of 32-bit words in an array, written in place.

use napi::Result;
use napi::bindgen_prelude::Uint32ArraySlice;

use crate::error::call_error;
use crate::options::whole;

/// Returns all words of an array of masks.
#[expect(unsafe_code, reason = "only JavaScript owns the memory of its arrays")]
pub(crate) fn all<'m>(mask: &'m mut Uint32ArraySlice<'_>) -> &'m mut [u32] {
    // SAFETY: Node-API gave the address and the length, and says zero words for an array that was detached.
    // The memory stays in place during the call, which runs no JavaScript. Every bit pattern is a `u32`. If
    // the memory is shared with another thread of JavaScript, its program has to ensure that nothing else
    // reads or writes the mask at the same time, as with every function that writes to shared memory.
    unsafe { mask.as_mut() }
}

/// Returns a row of an array of masks.
///
/// # Errors
/// The array does not consist of rows of this width, or there is no such row.
pub(crate) fn row<'m>(
    mask: &'m mut Uint32ArraySlice<'_>,
    width: usize,
    number: f64,
) -> Result<&'m mut [u32]> {
    let mask = all(mask);
    let (rows, index) = (rows(mask, width)?, whole("a row", number)? as usize);
    let row = mask.chunks_exact_mut(width).nth(index);
    row.ok_or_else(|| outside(index, rows))
}

/// Returns how many rows of this width an array has.
///
/// # Errors
/// It does not consist of such rows.
pub(crate) fn rows(mask: &[u32], width: usize) -> Result<usize> {
    let length = mask.len();
    match length.is_multiple_of(width) {
        true => Ok(length / width),
        false => Err(call_error(format!(
            "the mask has {length} words; a row of this vocabulary has {width}"
        ))),
    }
}

/// Returns the error of a row that an array does not have.
pub(crate) fn outside(index: usize, rows: usize) -> napi::Error {
    call_error(format!(
        "row {index} is outside of the mask, which has {rows} rows"
    ))
}
