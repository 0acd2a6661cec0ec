//! Vocabularies: the tokens of a model as bytes.

use std::ffi::c_char;
use std::sync::Arc;

use lexiform::vocab::{ReadLimits, TokenKind, Vocabulary, from_tokenizer_json};

use crate::boundary::{free, guarded, hand_out, handle, slice, value};

/// The handle of a vocabulary.
pub struct VocabularyHandle(pub(crate) Arc<Vocabulary>);

/// Creates a vocabulary of `n` tokens, whose bytes are concatenated in `bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_vocabulary_new(
    bytes: *const u8,
    lengths: *const usize,
    kinds: *const u8,
    n: usize,
    eos: *const u32,
    n_eos: usize,
    error: *mut *mut c_char,
) -> *mut VocabularyHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the header demands `n` lengths and kinds, and as many bytes as the lengths say.
        let (lengths, kinds, eos) = unsafe { (slice(lengths, n), slice(kinds, n), slice(eos, n_eos)) };
        let made = match (lengths, kinds, eos) {
            (Some(lengths), Some(kinds), Some(eos)) => {
                let total = lengths.iter().try_fold(0_usize, |sum, len| sum.checked_add(*len));
                // SAFETY: as above.
                let bytes = total.and_then(|total| unsafe { slice(bytes, total) });
                bytes.map_or_else(null, |bytes| new(bytes, lengths, kinds, eos))
            }
            _ => null(),
        };
        // SAFETY: the header demands that `error` is null or may be written to.
        unsafe { handed(made, error) }
    })
}

fn null<T>() -> Result<T, String> {
    Err("a null pointer stands where a buffer belongs".to_owned())
}

fn new(bytes: &[u8], lengths: &[usize], kinds: &[u8], eos: &[u32]) -> Result<Vocabulary, String> {
    let (mut tokens, mut rest) = (Vec::with_capacity(lengths.len()), bytes);
    for (token, (&length, &kind)) in lengths.iter().zip(kinds).enumerate() {
        let kind = match kind {
            0 => TokenKind::Text,
            1 => TokenKind::Special,
            2 => TokenKind::Unused,
            other => {
                return Err(format!(
                    "token {token} has the kind {other}; kinds are 0, 1 and 2"
                ));
            }
        };
        let (text, after) = rest.split_at(length);
        tokens.push((kind, text));
        rest = after;
    }
    Vocabulary::new(&tokens, eos).map_err(|error| error.to_string())
}

/// Creates a vocabulary from the text of a `tokenizer.json`, truncated or padded to `rows` tokens unless that
/// is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_vocabulary_from_tokenizer_json(
    json: *const c_char,
    len: usize,
    rows: usize,
    eos: *const u32,
    n_eos: usize,
    error: *mut *mut c_char,
) -> *mut VocabularyHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the header demands `len` bytes and `n_eos` tokens.
        let (json, eos) = unsafe { (slice(json.cast::<u8>(), len), slice(eos, n_eos)) };
        let made = match (json, eos) {
            (Some(json), Some(eos)) => read(json, rows, eos),
            _ => null(),
        };
        // SAFETY: the header demands that `error` is null or may be written to.
        unsafe { handed(made, error) }
    })
}

fn read(json: &[u8], rows: usize, eos: &[u32]) -> Result<Vocabulary, String> {
    let text = std::str::from_utf8(json).map_err(|error| error.to_string())?;
    let file = from_tokenizer_json(text, &ReadLimits::default()).map_err(|error| error.to_string())?;
    let file = match rows {
        0 => file,
        rows if rows > ReadLimits::default().tokens => {
            return Err(format!("{rows} rows are more than a vocabulary may have"));
        }
        rows => file.fitted_to(rows),
    };
    file.vocabulary(eos).map_err(|error| error.to_string())
}

/// # Safety
/// `error` is null or may be written to.
unsafe fn handed(made: Result<Vocabulary, String>, error: *mut *mut c_char) -> *mut VocabularyHandle {
    match made {
        Ok(vocabulary) => handle(VocabularyHandle(Arc::new(vocabulary))),
        Err(text) => {
            // SAFETY: as the caller promises.
            unsafe { hand_out(error, &text) };
            std::ptr::null_mut()
        }
    }
}

/// Returns the number of tokens of a vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_vocabulary_len(vocabulary: *const VocabularyHandle) -> usize {
    // SAFETY: the header demands a handle or null.
    guarded(0, || {
        unsafe { value(vocabulary) }.map_or(0, |vocabulary| vocabulary.0.len())
    })
}

/// Frees a vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_vocabulary_free(vocabulary: *mut VocabularyHandle) {
    // SAFETY: the header demands a handle that was not freed, or null.
    unsafe { free(vocabulary) };
}
