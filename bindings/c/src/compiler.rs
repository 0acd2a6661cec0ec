//! Compilers, which turn sources into grammars for one vocabulary.

use std::ffi::{CStr, c_char};

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::error::Diagnostics;
use lexiform::{Compiler, Options, Source};
use serde_json::Value;

use crate::boundary::{free, guarded, hand_out, handle, slice, value};
use crate::grammar::GrammarHandle;
use crate::options::{self, mistake};
use crate::vocabulary::VocabularyHandle;

/// The handle of a compiler. Several threads may compile with it at the same time.
pub struct CompilerHandle(pub(crate) Compiler);

/// Creates a compiler for a vocabulary. A primed one has compiled the parts of JSON in advance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_compiler_new(
    vocabulary: *const VocabularyHandle,
    primed: bool,
) -> *mut CompilerHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the header demands a handle or null.
        let Some(vocabulary) = (unsafe { value(vocabulary) }) else {
            return std::ptr::null_mut();
        };
        let compiler = Compiler::new(vocabulary.0.clone());
        let compiler = match primed {
            // The default options always compile.
            true => compiler.primed(&Options::for_generation()).unwrap_or(compiler),
            false => compiler,
        };
        handle(CompilerHandle(compiler))
    })
}

/// Frees a compiler. Its grammars remain valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_compiler_free(compiler: *mut CompilerHandle) {
    // SAFETY: the header demands a handle that was not freed, or null.
    unsafe { free(compiler) };
}

/// Compiles a source. If that fails, the result is null and `problems` receives all problems as JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_compile(
    compiler: *const CompilerHandle,
    kind: i32,
    text: *const c_char,
    len: usize,
    options: *const c_char,
    problems: *mut *mut c_char,
) -> *mut GrammarHandle {
    let compiled = guarded(Err(mistake("a mistake of this library")), || {
        // SAFETY: the header demands a handle or null, `len` bytes, and a string or null.
        let (compiler, text, options) = unsafe {
            let options = (!options.is_null()).then(|| CStr::from_ptr(options));
            (value(compiler), slice(text.cast::<u8>(), len), options)
        };
        let compiler = compiler.ok_or_else(|| mistake("the compiler is null"))?;
        let text = text.ok_or_else(|| mistake("the source is null"))?;
        let text = std::str::from_utf8(text).map_err(|error| mistake(&error.to_string()))?;
        let options = options.map(CStr::to_string_lossy);
        let options = options::read(options.as_deref()).map_err(|text| mistake(&text))?;
        let (grammar, diagnostics) = compile(&compiler.0, kind, text, &options)?;
        Ok(GrammarHandle {
            grammar,
            findings: options::listed(&diagnostics.findings).to_string(),
        })
    });
    match compiled {
        Ok(grammar) => handle(grammar),
        Err(text) => {
            // SAFETY: the header demands that `problems` is null or may be written to.
            unsafe { hand_out(problems, &text) };
            std::ptr::null_mut()
        }
    }
}

fn compile(
    compiler: &Compiler,
    kind: i32,
    text: &str,
    options: &Options,
) -> Result<(Grammar, Diagnostics), String> {
    let compile = |source| compiler.compile(source, options);
    let compiled: Result<_, CompileError> = match kind {
        0 => compile(Source::JsonSchema(text)),
        1 => compile(Source::Regex(text)),
        2 => compile(Source::Ebnf(text)),
        5 => compile(Source::Grammar(text)),
        3 => compile(Source::StructuralTag(text)),
        4 => compile(Source::Choice(&texts(text)?)),
        other => return Err(mistake(&format!("there is no kind {other} of sources"))),
    };
    compiled.map_err(|error| options::problems(&error))
}

/// Parses the texts of a choice: a JSON array of strings.
fn texts(json: &str) -> Result<Vec<String>, String> {
    let list: Option<Vec<Value>> = serde_json::from_str(json).ok();
    let text = |value: Value| value.as_str().map(str::to_owned);
    let texts: Option<Vec<String>> = list.and_then(|list| list.into_iter().map(text).collect());
    texts.ok_or_else(|| mistake("a choice is a JSON array of strings"))
}
