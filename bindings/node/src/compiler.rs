//! Compiles sources for one vocabulary, on the calling thread or on another one.

use lexiform::Source;
use lexiform::error::Diagnostics;
use lexiform::limits::Limits;
use lexiform::{Options, schema};
use napi::bindgen_prelude::AsyncTask;
use napi::{Env, Result, Task};
use napi_derive::napi;

use crate::error::{call_error, compile_error};
use crate::grammar::{About, Grammar};
use crate::options;
use crate::options::SourceKind;
use crate::vocabulary::Vocabulary;
use crate::watch::{Abort, Watch};

/// Compiles grammars for one vocabulary.
#[napi]
pub struct Compiler {
    inner: lexiform::Compiler,
    limits: Limits,
}

#[napi]
impl Compiler {
    /// Creates a compiler. A primed one has compiled the parts of JSON in advance. `limits` is JSON.
    #[napi(constructor, catch_unwind)]
    pub fn new(vocabulary: &Vocabulary, primed: bool, limits: Option<String>) -> Result<Compiler> {
        let limits = options::limits(limits.as_deref())?;
        let compiler = lexiform::Compiler::new(vocabulary.0.clone());
        let inner = match primed {
            true => compiler.primed(&Options::for_generation()),
            false => Ok(compiler),
        };
        let inner = inner.map_err(|error| compile_error(&error))?;
        Ok(Compiler { inner, limits })
    }

    /// Compiles a source of this kind. `options` is JSON.
    #[napi(catch_unwind)]
    pub fn compile(
        &self,
        env: Env,
        kind: String,
        text: String,
        options: Option<String>,
        prefix: Option<&[u8]>,
    ) -> Result<Grammar> {
        let mut task = self.task(&kind, text, options.as_deref(), prefix, None)?;
        let compiled = task.compute()?;
        task.resolve(env, compiled)
    }

    /// Compiles a source on another thread.
    #[napi(catch_unwind)]
    pub fn compile_async(
        &self,
        kind: String,
        text: String,
        options: Option<String>,
        prefix: Option<&[u8]>,
        abort: &Abort,
    ) -> Result<AsyncTask<CompileTask>> {
        let task = self.task(&kind, text, options.as_deref(), prefix, Some(abort))?;
        Ok(AsyncTask::new(task))
    }

    fn task(
        &self,
        kind: &str,
        text: String,
        options: Option<&str>,
        prefix: Option<&[u8]>,
        abort: Option<&Abort>,
    ) -> Result<CompileTask> {
        let kind = SourceKind::named(kind)?;
        let usual = Options {
            limits: self.limits.clone(),
            prefix: prefix.unwrap_or_default().to_vec(),
            regex: lexiform::regex::Dialect::Ecma,
            ..Options::for_generation()
        };
        let options = options::compile(kind, options, usual)?;
        Ok(CompileTask {
            compiler: self.inner.clone(),
            source: OwnedSource { kind, text },
            options: options.inner,
            watch: Watch::new("compile", options.timeout, abort),
        })
    }
}

/// A source with its text; that of a choice is a JSON array of its texts.
pub(crate) struct OwnedSource {
    kind: SourceKind,
    text: String,
}

impl OwnedSource {
    /// Compiles the source.
    ///
    /// # Errors
    /// All problems of the source.
    fn compile(&self, compiler: &lexiform::Compiler, options: &Options) -> Result<Compiled> {
        let text = &self.text[..];
        let compile = |source| {
            compiler
                .compile(source, options)
                .map_err(|error| compile_error(&error))
        };
        match self.kind {
            SourceKind::JsonSchema => compile(Source::JsonSchema(text)),
            SourceKind::Regex => compile(Source::Regex(text)),
            SourceKind::Ebnf => compile(Source::Ebnf(text)),
            SourceKind::Grammar => compile(Source::Grammar(text)),
            SourceKind::StructuralTag => compile(Source::StructuralTag(text)),
            SourceKind::Any => compile(Source::Any),
            SourceKind::Choice => {
                let texts: Option<Vec<String>> = serde_json::from_str(text).ok();
                let texts = texts.ok_or_else(|| call_error("a choice is an array of strings"))?;
                compile(Source::Choice(&texts))
            }
        }
    }
}

type Compiled = (lexiform::Grammar, Diagnostics);

/// A compile that can run on any thread.
pub struct CompileTask {
    compiler: lexiform::Compiler,
    source: OwnedSource,
    options: Options,
    watch: Watch,
}

impl CompileTask {
    /// Returns the schema with its options, for reports; `None` for other sources.
    fn schema(&self) -> Option<(String, schema::Options)> {
        let is_schema = self.source.kind == SourceKind::JsonSchema;
        is_schema.then(|| (self.source.text.clone(), self.options.schema.clone()))
    }
}

impl Task for CompileTask {
    type Output = Compiled;
    type JsValue = Grammar;

    fn compute(&mut self) -> Result<Compiled> {
        let CompileTask {
            compiler,
            source,
            options,
            watch,
        } = self;
        watch.run(|cancel| {
            let mut options = options.clone();
            options.limits.cancel = cancel;
            source.compile(compiler, &options)
        })
    }

    fn resolve(&mut self, env: Env, (grammar, diagnostics): Compiled) -> Result<Grammar> {
        let about = About {
            schema: self.schema(),
            limits: self.options.limits.clone(),
            diagnostics,
        };
        Ok(Grammar::new(env, grammar, about))
    }
}
