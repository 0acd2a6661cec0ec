//! Sessions: one sequence as inference engines drive it.

use lexiform::Session;
use lexiform::{Ends, SessionError};

use crate::boundary::{Status, free, guarded, handle, slice, slice_mut, value};
use crate::grammar::{GrammarHandle, budget};

/// The handle of a session, which one thread uses at a time.
pub struct SessionHandle(Session);

fn status(result: Result<(), SessionError>) -> Status {
    match result {
        Ok(()) => Status::Ok,
        Err(SessionError::NotAllowed { .. } | SessionError::Ended { .. }) => Status::NotAllowed,
        Err(SessionError::TooFar { .. }) => Status::Invalid,
        Err(SessionError::Exhausted(_)) => Status::Exhausted,
    }
}

/// Returns the session behind a pointer.
///
/// # Safety
/// The pointer is null, or a handle that nothing else uses during the call.
unsafe fn session<'a>(pointer: *mut SessionHandle) -> Option<&'a mut Session> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_mut() }.map(|handle| &mut handle.0)
}

/// Creates a sequence at its beginning. It ends with one of the `n` tokens, or with those of the vocabulary
/// if `n` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_new(
    grammar: *const GrammarHandle,
    ends: *const u32,
    n: usize,
) -> *mut SessionHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the header demands a handle or null, and `n` tokens.
        let (Some(grammar), Some(ends)) = (unsafe { (value(grammar), slice(ends, n)) }) else {
            return std::ptr::null_mut();
        };
        let grammar = &grammar.grammar;
        let own = (!ends.is_empty()).then(|| Ends::new(ends.iter().copied(), grammar.vocabulary()));
        match own.transpose() {
            Ok(own) => handle(SessionHandle(Session::new(grammar.clone(), own))),
            Err(_) => std::ptr::null_mut(),
        }
    })
}

/// Returns an independent copy of a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_clone(pointer: *const SessionHandle) -> *mut SessionHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the header demands a handle or null.
        unsafe { value(pointer) }.map_or(std::ptr::null_mut(), |session| {
            handle(SessionHandle(session.0.clone()))
        })
    })
}

/// Frees a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_free(pointer: *mut SessionHandle) {
    // SAFETY: the header demands a handle that was not freed, or null.
    unsafe { free(pointer) };
}

/// Accepts all of these tokens, or none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_accept(
    pointer: *mut SessionHandle,
    tokens: *const u32,
    n: usize,
) -> Status {
    guarded(Status::Panic, || {
        // SAFETY: the header demands a handle or null, and `n` tokens.
        match unsafe { (session(pointer), slice(tokens, n)) } {
            (Some(session), Some(tokens)) => status(session.accept(tokens)),
            _ => Status::Invalid,
        }
    })
}

/// Returns how many of these tokens could be accepted one after the other; accepts none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_validate(
    pointer: *const SessionHandle,
    tokens: *const u32,
    n: usize,
) -> usize {
    guarded(0, || {
        // SAFETY: the header demands a handle or null, and `n` tokens.
        match unsafe { (value(pointer), slice(tokens, n)) } {
            (Some(session), Some(tokens)) => session.0.validate(tokens),
            _ => 0,
        }
    })
}

/// Removes the last `n` tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_rollback(pointer: *mut SessionHandle, n: usize) -> Status {
    guarded(Status::Panic, || {
        // SAFETY: the header demands a handle or null.
        unsafe { session(pointer) }.map_or(Status::Invalid, |session| status(session.rollback(n)))
    })
}

/// Removes all tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_reset(pointer: *mut SessionHandle) -> Status {
    guarded(Status::Panic, || {
        // SAFETY: the header demands a handle or null.
        unsafe { session(pointer) }.map_or(Status::Invalid, |session| {
            session.reset();
            Status::Ok
        })
    })
}

/// Writes the mask of the tokens that may come next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_fill(
    pointer: *const SessionHandle,
    budget_of_tokens: i64,
    words: *mut u32,
    n_words: usize,
) -> Status {
    guarded(Status::Panic, || {
        // SAFETY: the header demands a handle or null, and `n_words` words.
        let (Some(session), Some(words)) = (unsafe { (value(pointer), slice_mut(words, n_words)) }) else {
            return Status::Invalid;
        };
        if words.len() * 32 < session.0.grammar().vocabulary().len() {
            return Status::Invalid;
        }
        match session.0.fill(budget(budget_of_tokens), words) {
            Ok(()) => Status::Ok,
            Err(_) => Status::Exhausted,
        }
    })
}

/// Returns the number of accepted tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_len(pointer: *const SessionHandle) -> usize {
    // SAFETY: the header demands a handle or null.
    guarded(0, || {
        unsafe { value(pointer) }.map_or(0, |session| session.0.tokens().len())
    })
}

/// Returns `true` if the text so far is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_is_accepting(pointer: *const SessionHandle) -> bool {
    // SAFETY: the header demands a handle or null.
    guarded(false, || {
        unsafe { value(pointer) }.is_some_and(|session| session.0.is_accepting())
    })
}

/// Returns `true` if a token that ends the sequence was accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_session_is_terminated(pointer: *const SessionHandle) -> bool {
    // SAFETY: the header demands a handle or null.
    guarded(false, || {
        unsafe { value(pointer) }.is_some_and(|session| session.0.is_terminated())
    })
}
