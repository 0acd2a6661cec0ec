//! Grammars and their states: masks and steps.

use std::ffi::c_char;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use lexiform::MaskRequest;
use lexiform::{BatchRow, Pool};
use lexiform::{Grammar, State};

use crate::boundary::{Status, free, guarded, handle, slice, slice_mut, string, value};

/// The handle of a grammar.
pub struct GrammarHandle {
    pub(crate) grammar: Grammar,
    /// The findings of its compile as JSON.
    pub(crate) findings: String,
}

/// The number that represents no state.
pub const NONE: u32 = u32::MAX;

/// A sequence of a batch, `lexiform_row` in C.
#[repr(C)]
pub struct RowOfC {
    /// Its grammar; null for a sequence without one, which may take every token.
    pub grammar: *const GrammarHandle,
    /// Its state.
    pub state: u32,
    /// The row of the buffer that its mask is written to.
    pub index: usize,
    /// The number of tokens that it may still take; negative for no limit.
    pub budget: i64,
}

/// Returns the budget of a sequence; `None` if C passes a negative number.
pub(crate) fn budget(budget: i64) -> Option<usize> {
    usize::try_from(budget).ok()
}

/// Returns a grammar and one of its states by number; `None` if either is missing.
///
/// # Safety
/// The pointer is null or a handle.
unsafe fn at<'a>(grammar: *const GrammarHandle, state: u32) -> Option<(&'a Grammar, State)> {
    // SAFETY: as the caller promises.
    let grammar = &unsafe { value(grammar) }?.grammar;
    Some((grammar, grammar.state(state)?))
}

/// Returns the findings of a compile that did not stop it, as a JSON array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_grammar_findings(grammar: *const GrammarHandle) -> *mut c_char {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the header demands a handle or null.
        unsafe { value(grammar) }.map_or(std::ptr::null_mut(), |grammar| string(&grammar.findings))
    })
}

/// Creates another handle of the same grammar.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_grammar_clone(grammar: *const GrammarHandle) -> *mut GrammarHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the header demands a handle or null.
        let Some(grammar) = (unsafe { value(grammar) }) else {
            return std::ptr::null_mut();
        };
        handle(GrammarHandle {
            grammar: grammar.grammar.clone(),
            findings: grammar.findings.clone(),
        })
    })
}

/// Frees a grammar. Sessions that still use it keep it alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_grammar_free(grammar: *mut GrammarHandle) {
    // SAFETY: the header demands a handle that was not freed, or null.
    unsafe { free(grammar) };
}

/// Returns the state before any token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_start(grammar: *const GrammarHandle) -> u32 {
    // SAFETY: the header demands a handle or null.
    guarded(NONE, || {
        unsafe { value(grammar) }.map_or(NONE, |grammar| grammar.grammar.start().to_u32())
    })
}

/// Returns the state after a token, or [`NONE`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_step(grammar: *const GrammarHandle, state: u32, token: u32) -> u32 {
    guarded(NONE, || {
        // SAFETY: the header demands a handle or null.
        let Some((grammar, state)) = (unsafe { at(grammar, state) }) else {
            return NONE;
        };
        let is_token = (token as usize) < grammar.vocabulary().len();
        let next = is_token.then(|| grammar.step(state, token)).flatten();
        next.map_or(NONE, State::to_u32)
    })
}

/// Writes the mask of a state: bit `t % 32` of word `t / 32` is set where token `t` may come next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_mask(
    grammar: *const GrammarHandle,
    state: u32,
    budget_of_tokens: i64,
    words: *mut u32,
    n_words: usize,
) -> Status {
    guarded(Status::Panic, || {
        // SAFETY: the header demands a handle or null, and `n_words` words.
        let (Some((grammar, state)), Some(words)) =
            (unsafe { (at(grammar, state), slice_mut(words, n_words)) })
        else {
            return Status::Invalid;
        };
        if words.len() * 32 < grammar.vocabulary().len() {
            return Status::Invalid;
        }
        match grammar.fill(MaskRequest::from(state).within(budget(budget_of_tokens)), words) {
            Ok(()) => Status::Ok,
            Err(_) => Status::Exhausted,
        }
    })
}

/// Returns `true` if the text so far is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_is_accepting(grammar: *const GrammarHandle, state: u32) -> bool {
    // SAFETY: the header demands a handle or null.
    guarded(false, || {
        unsafe { at(grammar, state) }.is_some_and(|(grammar, state)| grammar.is_accepting(state))
    })
}

/// Returns `true` if a token that ends the text was taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_is_finished(grammar: *const GrammarHandle, state: u32) -> bool {
    // SAFETY: the header demands a handle or null.
    guarded(false, || {
        unsafe { at(grammar, state) }.is_some_and(|(grammar, state)| grammar.is_finished(state))
    })
}

/// Writes the bytes that every completion continues with, as far as there is room; returns their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_forced(
    grammar: *const GrammarHandle,
    state: u32,
    out: *mut u8,
    capacity: usize,
) -> usize {
    guarded(0, || {
        // SAFETY: the header demands a handle or null, and room for `capacity` bytes.
        let (Some((grammar, state)), Some(out)) = (unsafe { (at(grammar, state), slice_mut(out, capacity)) })
        else {
            return 0;
        };
        let forced = grammar.forced(state);
        let written = forced.len().min(out.len());
        out[..written].copy_from_slice(&forced[..written]);
        forced.len()
    })
}

/// Writes the masks of many sequences into one buffer of `n_rows` rows of `stride` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_fill_batch(
    rows: *const RowOfC,
    n: usize,
    words: *mut u32,
    n_rows: usize,
    stride: usize,
) -> Status {
    guarded(Status::Panic, || {
        let Some(len) = n_rows.checked_mul(stride) else {
            return Status::Invalid;
        };
        // SAFETY: the header demands `n` rows and a buffer of `n_rows * stride` words.
        let (Some(rows), Some(words)) = (unsafe { (slice(rows, n), slice_mut(words, len)) }) else {
            return Status::Invalid;
        };
        if stride == 0 || rows.iter().any(|row| row.index >= n_rows) {
            return Status::Invalid;
        }
        let mut constrained = Vec::with_capacity(n);
        for row in rows {
            if row.grammar.is_null() {
                words[row.index * stride..][..stride].fill(u32::MAX);
                continue;
            }
            // SAFETY: the header demands a handle.
            let Some((grammar, state)) = (unsafe { at(row.grammar, row.state) }) else {
                return Status::Invalid;
            };
            if stride * 32 < grammar.vocabulary().len() {
                return Status::Invalid;
            }
            let of_rust = BatchRow {
                grammar: grammar.clone(),
                state,
                budget: budget(row.budget),
                ends: None,
            };
            constrained.push((row.index, of_rust));
        }
        match pool().fill_rows(constrained, stride, words).is_empty() {
            true => Status::Ok,
            false => Status::Exhausted,
        }
    })
}

/// Returns the thread pool that computes the masks of batches.
fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(available_parallelism().map_or(1, usize::from), std::process::id))
}
