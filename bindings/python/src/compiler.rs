//! Compiles sources for one vocabulary, and caches the most recently requested grammars.

mod cache;
pub(crate) mod model_tags;
mod options;
mod source;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lexiform::error::{CompileError, Diagnostics};
use lexiform::grammar::GrammarOptions;
use lexiform::limits::Limits;
use lexiform::{Options, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::compile_error;
use crate::fork;
use crate::grammar::{About, Grammar};
use crate::vocabulary::Vocabulary;
use crate::watch::Watch;

use cache::{Asked, Cache, OwnedSource};
use options::SchemaKeywords;
use source::{schema_text, tag_text};

/// Compiles grammars for one vocabulary; threads may share it.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Compiler {
    inner: lexiform::Compiler,
    limits: Limits,
    cache_bytes: usize,
    cache: Mutex<Cache>,
}

#[pymethods]
impl Compiler {
    /// Creates a compiler that caches the most recently requested grammars, as long as they take at most
    /// `cache_bytes` together. With `primed` it compiles the parts of JSON in advance, which takes a fraction
    /// of a second. `limits` changes the limits of a compile and of a mask, by the names of the library's
    /// limits.
    #[new]
    #[pyo3(signature = (vocabulary, *, primed = true, cache_bytes = 256 << 20, limits = None))]
    fn new(
        py: Python<'_>,
        vocabulary: &Bound<'_, Vocabulary>,
        primed: bool,
        cache_bytes: usize,
        limits: Option<BTreeMap<String, usize>>,
    ) -> PyResult<Compiler> {
        let limits = options::limits(limits.unwrap_or_default())?;
        let vocabulary = vocabulary.get().inner.clone();
        let _inside = fork::enter(py);
        let inner = py.detach(|| {
            let compiler = lexiform::Compiler::new(vocabulary);
            match primed {
                true => compiler.primed(&Options::for_generation()),
                false => Ok(compiler),
            }
        });
        Ok(Compiler {
            inner: inner.map_err(|error| compile_error(&error))?,
            limits,
            cache_bytes,
            cache: Mutex::new(Cache::new()),
        })
    }

    /// Compiles the grammar of the JSON texts that a schema accepts. The schema is a text, a dict or a bool,
    /// a Pydantic model, or a Pydantic `TypeAdapter`. `prefix` are bytes that precede every text, such as
    /// those that `Vocabulary.heal` removes from a prompt. `deadline` bounds the compile in seconds. `strict`
    /// refuses keywords that have no effect but were meant to have one, such as misspelled ones; `exact` also
    /// refuses unknown formats, and keywords that allow less than they say.
    ///
    /// An object that lists `properties` and does not mention others is closed;
    /// `additional_properties="open"` allows further keys, as in the specification. Integers are written in
    /// digits and other numbers as doubles are; `numbers="any"` allows all spellings. White space is none,
    /// one space, or a line break with up to eight spaces or tabs for each open bracket; "flexible" allows up
    /// to 64, "compact" none at all.
    #[pyo3(signature = (schema, *, whitespace = "indented", whitespace_pattern = None, key_order = "schema",
        additional_properties = "closed", numbers = "double", escapes = "minimal", draft = None, formats = "assert",
        documents = None, strict = false, exact = false, prefix = None, deadline = None))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of a function of Python")]
    fn json_schema(
        &self,
        py: Python<'_>,
        schema: &Bound<'_, PyAny>,
        whitespace: &str,
        whitespace_pattern: Option<String>,
        key_order: &str,
        additional_properties: &str,
        numbers: &str,
        escapes: &str,
        draft: Option<&str>,
        formats: &str,
        documents: Option<BTreeMap<String, Bound<'_, PyAny>>>,
        strict: bool,
        exact: bool,
        prefix: Option<&[u8]>,
        deadline: Option<f64>,
    ) -> PyResult<Grammar> {
        let documents = documents.unwrap_or_default().into_iter();
        let documents = documents.map(|(uri, document)| Ok((uri, schema_text(&document)?)));
        let keywords = SchemaKeywords {
            whitespace,
            whitespace_pattern,
            key_order,
            additional_properties,
            numbers,
            escapes,
            draft,
            formats,
            documents: documents.collect::<PyResult<_>>()?,
            strict,
            exact,
        };
        let source = OwnedSource::Schema(schema_text(schema)?, keywords.options()?);
        self.get(py, source.behind(prefix), deadline)
    }

    /// Compiles the grammar of the texts that a regular expression matches from edge to edge. `dialect` is
    /// "python", "ecma" or "rust".
    #[pyo3(signature = (pattern, *, dialect = "python", prefix = None, deadline = None))]
    fn regex(
        &self,
        py: Python<'_>,
        pattern: String,
        dialect: &str,
        prefix: Option<&[u8]>,
        deadline: Option<f64>,
    ) -> PyResult<Grammar> {
        let source = OwnedSource::Regex(pattern, options::dialect(dialect)?);
        self.get(py, source.behind(prefix), deadline)
    }

    /// Compiles a grammar in Lexiform's EBNF.
    #[pyo3(signature = (text, *, prefix = None, deadline = None))]
    fn ebnf(
        &self,
        py: Python<'_>,
        text: String,
        prefix: Option<&[u8]>,
        deadline: Option<f64>,
    ) -> PyResult<Grammar> {
        self.get(py, OwnedSource::Ebnf(text).behind(prefix), deadline)
    }

    /// Compiles a grammar in the notation of this name (`lark`, `llguidance`, `ebnf` …), or in one that is
    /// recognised. `start` is the rule that derives whole texts, if it is not that of the notation, and
    /// `imports` the sources of the libraries that the grammar may import.
    #[pyo3(signature = (text, *, notation = None, start = None, imports = None, prefix = None, deadline = None))]
    #[expect(clippy::too_many_arguments, reason = "Python's keywords")]
    fn grammar(
        &self,
        py: Python<'_>,
        text: String,
        notation: Option<&str>,
        start: Option<String>,
        imports: Option<BTreeMap<String, String>>,
        prefix: Option<&[u8]>,
        deadline: Option<f64>,
    ) -> PyResult<Grammar> {
        let notation = notation.map(str::parse).transpose();
        let options = GrammarOptions {
            notation: notation.map_err(PyValueError::new_err)?,
            start,
            imports: imports.unwrap_or_default(),
        };
        self.get(py, OwnedSource::Grammar(text, options).behind(prefix), deadline)
    }

    /// Compiles the grammar whose texts are exactly `texts`.
    #[pyo3(signature = (texts, *, prefix = None))]
    fn choice(&self, py: Python<'_>, texts: Vec<String>, prefix: Option<&[u8]>) -> PyResult<Grammar> {
        self.get(py, OwnedSource::Choice(texts).behind(prefix), None)
    }

    /// Compiles the grammar of everything that a model can write: any bytes, and special tokens between them.
    #[pyo3(signature = (*, prefix = None))]
    fn any(&self, py: Python<'_>, prefix: Option<&[u8]>) -> PyResult<Grammar> {
        self.get(py, OwnedSource::Any.behind(prefix), None)
    }

    /// Compiles the grammar of a structural tag: a JSON text, a dict, or a Pydantic object such as those of
    /// xgrammar. `dialect` is the dialect of the regular expressions in it; `additional_properties` and
    /// `numbers` apply to its schemas.
    #[pyo3(signature = (tag, *, dialect = "python", additional_properties = "closed", numbers = "double", prefix = None,
        deadline = None))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of a function of Python")]
    fn structural_tag(
        &self,
        py: Python<'_>,
        tag: &Bound<'_, PyAny>,
        dialect: &str,
        additional_properties: &str,
        numbers: &str,
        prefix: Option<&[u8]>,
        deadline: Option<f64>,
    ) -> PyResult<Grammar> {
        let schemas = options::writing(additional_properties, numbers)?;
        let source = OwnedSource::StructuralTag(tag_text(tag)?, options::dialect(dialect)?, schemas);
        self.get(py, source.behind(prefix), deadline)
    }

    /// Clears the cache of grammars; grammars in use stay valid.
    fn clear(&self) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The number of cached grammars.
    #[getter]
    fn cached(&self) -> usize {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Compiler {
    fn get(&self, py: Python<'_>, asked: Asked, deadline: Option<f64>) -> PyResult<Grammar> {
        if deadline.is_some_and(|seconds| seconds.is_nan() || seconds < 0.0) {
            return Err(PyValueError::new_err(
                "a deadline is a number of seconds, 0 or more",
            ));
        }
        let _inside = fork::enter(py);
        py.detach(|| {
            let known = self
                .cache
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&asked);
            match known {
                Some(known) => Ok(known),
                None => self.compile(asked, deadline),
            }
        })
    }

    fn compile(&self, asked: Asked, deadline: Option<f64>) -> PyResult<Grammar> {
        let watch = Watch::new("compile", deadline);
        let limits = Limits {
            cancel: watch.cancel(),
            ..self.limits.clone()
        };
        let compiled = self.compiled(&asked, limits);
        let (grammar, diagnostics) = match (compiled, watch.reason()) {
            (_, Some(reason)) => return Err(reason),
            (Err(error), None) => return Err(compile_error(&error)),
            (Ok(compiled), None) => compiled,
        };
        let about = About {
            schema: match &asked.source {
                OwnedSource::Schema(text, options) => Some((text.clone(), options.clone())),
                _ => None,
            },
            limits: self.limits.clone(),
            diagnostics,
        };
        let grammar = Grammar::new(grammar, about);
        self.keep(asked, grammar.handle());
        Ok(grammar)
    }

    fn compiled(
        &self,
        asked: &Asked,
        limits: Limits,
    ) -> Result<(lexiform::Grammar, Diagnostics), CompileError> {
        let mut options = Options {
            limits,
            prefix: asked.prefix.clone(),
            ..Options::for_generation()
        };
        let source = match &asked.source {
            OwnedSource::Schema(text, schema) => {
                options.schema = schema.clone();
                Source::JsonSchema(text)
            }
            OwnedSource::Regex(pattern, dialect) => {
                options.regex = *dialect;
                Source::Regex(pattern)
            }
            OwnedSource::Ebnf(text) => Source::Ebnf(text),
            OwnedSource::Grammar(text, grammar) => {
                options.grammar = grammar.clone();
                Source::Grammar(text)
            }
            OwnedSource::Choice(texts) => Source::Choice(texts),
            OwnedSource::Any => Source::Any,
            OwnedSource::StructuralTag(text, dialect, schemas) => {
                options.regex = *dialect;
                options.schema = schemas.clone();
                Source::StructuralTag(text)
            }
        };
        self.inner.compile(source, &options)
    }

    fn keep(&self, asked: Asked, grammar: Grammar) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.keep(asked, grammar, self.cache_bytes);
    }
}
