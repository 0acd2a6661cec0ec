//! The functions of `llguidance.h` (version 1.0.1) that llama.cpp calls, with the same names and layouts.
//!
//! ```text
//!   llg_new_tokenizer ─► llg_constraint_init_set_defaults ─► llg_new_matcher ─► compute_mask, get_mask, consume_token …
//! ```
//!
//! A llama.cpp compiled with `-DLLAMA_USE_LLGUIDANCE` can link this library instead, without a patch. The
//! kinds of grammars are `json`, `json_schema`, `json_object`, `regex` and `lark`; `ebnf`, and `grammar` for
//! a notation that is recognised, are additions of Lexiform. The numbers in `LlgParserLimits` belong to
//! another engine and have no effect: the limits of Lexiform hold.

use std::ffi::{CStr, CString, c_char, c_void};

use lexiform::Session;
use lexiform::grammar::Notation;
use lexiform::vocab::{ReadLimits, TokenKind, Vocabulary, from_tokenizer_json};
use lexiform::{Compiler, Options, Source};

use crate::boundary::{free, guarded, handle, slice, value};

/// `LlgParserLimits`, which has no effect here.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct LlgParserLimits {
    max_items_in_row: usize,
    initial_lexer_fuel: u64,
    step_lexer_fuel: u64,
    step_max_items: usize,
    max_lexer_states: usize,
    max_grammar_size: usize,
    precompute_large_lexemes: bool,
}

/// `LlgConstraintInit`: the parameters of a matcher.
#[repr(C)]
pub struct LlgConstraintInit {
    tokenizer: *const LlgTokenizer,
    log_buffer_level: u32,
    log_stderr_level: u32,
    ff_tokens_ok: bool,
    backtrack_ok: bool,
    limits: LlgParserLimits,
}

/// `LlgTokenizerInit`: the tokens of a model.
#[repr(C)]
pub struct LlgTokenizerInit {
    vocab_size: u32,
    tok_eos: u32,
    token_lens: *const u32,
    token_bytes: *const u8,
    tokenizer_json: *const c_char,
    tokenize_assumes_string: bool,
    /// A function that is not called: masks need no tokenizer.
    tokenize_fn: *const c_void,
    use_approximate_greedy_tokenize_fn: bool,
    tokenize_user_data: *const c_void,
    slices: *const *const c_char,
}

/// A vocabulary with the data that its grammars share.
#[derive(Clone)]
pub struct LlgTokenizer(Compiler);

/// A sequence, or the reason why there is none.
#[derive(Clone)]
pub struct LlgMatcher {
    session: Result<Session, CString>,
    words: usize,
    eos: u32,
    /// The mask, if it was computed since the last token.
    mask: Option<Vec<u32>>,
}

/// The first byte of a special token.
const SPECIAL: u8 = 0xFF;

/// Fills in the defaults, with a tokenizer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_constraint_init_set_defaults(
    init: *mut LlgConstraintInit,
    tokenizer: *const LlgTokenizer,
) {
    if !init.is_null() {
        let defaults = LlgConstraintInit {
            tokenizer,
            log_buffer_level: 0,
            log_stderr_level: 1,
            ff_tokens_ok: false,
            backtrack_ok: false,
            limits: LlgParserLimits::default(),
        };
        // SAFETY: the header demands memory for it, which may be uninitialised.
        unsafe { init.write(defaults) };
    }
}

/// Creates a tokenizer; returns null with a message in `error` if the tokens form no vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_tokenizer(
    init: *const LlgTokenizerInit,
    error: *mut c_char,
    error_len: usize,
) -> *mut LlgTokenizer {
    let made = guarded(Err("a mistake of this library".to_owned()), || {
        // SAFETY: the header demands an init with its buffers, or null.
        let init = unsafe { value(init) }.ok_or("the description of the tokenizer is null")?;
        // SAFETY: as above.
        let vocabulary = unsafe { vocabulary(init) }?;
        Ok(LlgTokenizer(Compiler::new(vocabulary.into())))
    });
    match made {
        Ok(tokenizer) => handle(tokenizer),
        Err(text) => {
            // SAFETY: the header demands `error_len` bytes.
            unsafe { write_text(error, error_len, &text) };
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// The buffers of `init` are null or as long as it says.
unsafe fn vocabulary(init: &LlgTokenizerInit) -> Result<Vocabulary, String> {
    if init.token_lens.is_null() && !init.tokenizer_json.is_null() {
        // SAFETY: as the caller promises.
        let text = unsafe { CStr::from_ptr(init.tokenizer_json) }.to_str();
        let text = text.map_err(|error| error.to_string())?;
        let file = from_tokenizer_json(text, &ReadLimits::default()).map_err(|error| error.to_string())?;
        let file = match init.vocab_size {
            0 => file,
            rows => file.fitted_to((rows as usize).min(ReadLimits::default().tokens)),
        };
        return file
            .vocabulary(&[init.tok_eos])
            .map_err(|error| error.to_string());
    }
    let null = || "the tokens are null".to_owned();
    // SAFETY: as the caller promises.
    let lengths = unsafe { slice(init.token_lens, init.vocab_size as usize) }.ok_or_else(null)?;
    let total = lengths.iter().map(|len| *len as usize).sum();
    // SAFETY: as the caller promises.
    let mut rest = unsafe { slice(init.token_bytes, total) }.ok_or_else(null)?;
    let mut tokens = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (bytes, after) = rest.split_at(length as usize);
        rest = after;
        tokens.push(match bytes {
            [] => (TokenKind::Unused, bytes),
            [SPECIAL, name @ ..] => (TokenKind::Special, name),
            text => (TokenKind::Text, text),
        });
    }
    Vocabulary::new(&tokens, &[init.tok_eos]).map_err(|error| error.to_string())
}

/// Writes a text with a terminating zero byte, as far as there is room.
///
/// # Safety
/// There is room for `len` bytes, or the pointer is null.
unsafe fn write_text(place: *mut c_char, len: usize, text: &str) {
    // SAFETY: as the caller promises.
    if let Some([out @ .., end]) = unsafe { crate::boundary::slice_mut(place.cast::<u8>(), len) } {
        let written = text.len().min(out.len());
        out[..written].copy_from_slice(&text.as_bytes()[..written]);
        match out.get_mut(written) {
            Some(zero) => *zero = 0,
            None => *end = 0,
        }
    }
}

/// Creates another handle of the same tokenizer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_clone_tokenizer(tokenizer: *const LlgTokenizer) -> *mut LlgTokenizer {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the header demands a handle.
        unsafe { value(tokenizer) }.map_or(std::ptr::null_mut(), |tokenizer| handle(tokenizer.clone()))
    })
}

/// Frees a tokenizer. Its matchers remain valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_free_tokenizer(tokenizer: *mut LlgTokenizer) {
    // SAFETY: the header demands a handle that was not freed.
    unsafe { free(tokenizer) };
}

/// Creates a matcher, which is never null; [`llg_matcher_get_error`] reports whether it can be used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_matcher(
    init: *const LlgConstraintInit,
    kind: *const c_char,
    data: *const c_char,
) -> *mut LlgMatcher {
    let matcher = guarded(LlgMatcher::failed("a mistake of this library"), || {
        // SAFETY: the header demands an init with a tokenizer, and strings.
        let (tokenizer, texts) = unsafe {
            let tokenizer = value(init).and_then(|init| value(init.tokenizer));
            let texts = (!kind.is_null() && !data.is_null())
                .then(|| (CStr::from_ptr(kind).to_str(), CStr::from_ptr(data).to_str()));
            (tokenizer, texts)
        };
        match (tokenizer, texts) {
            (Some(tokenizer), Some((Ok(kind), Ok(data)))) => LlgMatcher::new(&tokenizer.0, kind, data),
            (None, _) => LlgMatcher::failed("the tokenizer is null"),
            _ => LlgMatcher::failed("the kind and the grammar must be texts in UTF-8"),
        }
    });
    handle(matcher)
}

impl LlgMatcher {
    fn failed(reason: &str) -> Self {
        Self {
            session: Err(CString::new(reason.replace('\0', " ")).unwrap_or_default()),
            words: 0,
            eos: 0,
            mask: None,
        }
    }

    fn new(compiler: &Compiler, kind: &str, data: &str) -> Self {
        let mut options = Options::default();
        let source = match kind {
            "json" | "json_schema" => Source::JsonSchema(data),
            "json_object" => Source::JsonSchema("{\"type\": \"object\"}"),
            "regex" => Source::Regex(data),
            "ebnf" => Source::Ebnf(data),
            "lark" => {
                options.grammar.notation = Some(Notation::Llguidance);
                Source::Grammar(data)
            }
            "grammar" => Source::Grammar(data),
            other => return Self::failed(&format!("there is no kind {other:?} of grammars")),
        };
        let compiled = compiler.compile(source, &options);
        let vocabulary = compiler.vocabulary();
        match compiled {
            Ok((grammar, _)) => Self {
                session: Ok(Session::new(grammar, None)),
                words: vocabulary.len().div_ceil(32),
                eos: vocabulary.eos().first().copied().unwrap_or_default(),
                mask: None,
            },
            Err(error) => Self::failed(&error.to_string()),
        }
    }

    fn compute_mask(&mut self) -> Result<(), String> {
        let Ok(session) = &self.session else {
            return Err(String::new());
        };
        let mut words = vec![0; self.words];
        if session.is_terminated() {
            // As in llguidance: a caller that samples after the end gets the end token again.
            words[self.eos as usize / 32] |= 1 << (self.eos % 32);
        } else {
            session
                .fill(None, &mut words)
                .map_err(|error| error.to_string())?;
        }
        self.mask = Some(words);
        Ok(())
    }

    fn consume(&mut self, token: u32) -> Result<(), String> {
        self.mask = None;
        match &mut self.session {
            Err(_) => Err(String::new()),
            Ok(session) if session.is_terminated() && token == self.eos => Ok(()),
            Ok(session) => session.accept(&[token]).map_err(|error| error.to_string()),
        }
    }

    /// Converts a result into a status for C. The first error is kept.
    fn told(&mut self, result: Result<(), String>) -> i32 {
        match result {
            Ok(()) => 0,
            Err(reason) => {
                if self.session.is_ok() {
                    *self = Self {
                        words: self.words,
                        ..Self::failed(&reason)
                    };
                }
                -1
            }
        }
    }
}

/// Runs `work` on a matcher; returns -1 if it is null or has failed.
///
/// # Safety
/// The pointer is null, or a handle that nothing else uses during the call.
unsafe fn with(matcher: *mut LlgMatcher, work: impl FnOnce(&mut LlgMatcher) -> Result<(), String>) -> i32 {
    guarded(-1, || {
        // SAFETY: as the caller promises.
        match unsafe { matcher.as_mut() } {
            Some(matcher) => {
                let result = work(matcher);
                matcher.told(result)
            }
            None => -1,
        }
    })
}

/// Returns the reason why a matcher cannot be used; null if it can.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_get_error(matcher: *mut LlgMatcher) -> *const c_char {
    // SAFETY: the header demands a handle.
    match unsafe { value(matcher) }.map(|matcher| &matcher.session) {
        Some(Err(reason)) => reason.as_ptr(),
        _ => std::ptr::null(),
    }
}

/// Returns the number of bytes of a mask: four for each 32 tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_get_mask_byte_size(matcher: *mut LlgMatcher) -> usize {
    // SAFETY: the header demands a handle.
    unsafe { value(matcher) }.map_or(0, |matcher| matcher.words * 4)
}

/// Returns the mask computed since the last token; null if none was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_get_mask(matcher: *mut LlgMatcher) -> *const u32 {
    // SAFETY: the header demands a handle.
    let mask = unsafe { value(matcher) }.and_then(|matcher| matcher.mask.as_ref());
    mask.map_or(std::ptr::null(), |mask| mask.as_ptr())
}

/// Computes the mask of the tokens that may come next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_compute_mask(matcher: *mut LlgMatcher) -> i32 {
    // SAFETY: the header demands a handle.
    unsafe { with(matcher, LlgMatcher::compute_mask) }
}

/// Takes a token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_consume_token(matcher: *mut LlgMatcher, token: u32) -> i32 {
    // SAFETY: the header demands a handle.
    unsafe { with(matcher, |matcher| matcher.consume(token)) }
}

/// Resets the matcher to the beginning.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_reset(matcher: *mut LlgMatcher) -> i32 {
    let reset = |matcher: &mut LlgMatcher| {
        matcher.mask = None;
        match &mut matcher.session {
            Ok(session) => {
                session.reset();
                Ok(())
            }
            Err(_) => Err(String::new()),
        }
    };
    // SAFETY: the header demands a handle.
    unsafe { with(matcher, reset) }
}

/// Returns an independent copy of a matcher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_clone_matcher(matcher: *const LlgMatcher) -> *mut LlgMatcher {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the header demands a handle.
        unsafe { value(matcher) }.map_or(std::ptr::null_mut(), |matcher| handle(matcher.clone()))
    })
}

/// Frees a matcher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_free_matcher(matcher: *mut LlgMatcher) {
    // SAFETY: the header demands a handle that was not freed.
    unsafe { free(matcher) };
}
