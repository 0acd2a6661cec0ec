//! Compiled grammars, kept by their source: a client sends the same schema with every request.
//!
//! The cache is bounded by bytes. Requests that bring the same new source at the same time wait for one compile. What
//! does not compile is not kept: the compiler's limits are deterministic, so the answer would be the same again, but
//! keeping it would let bad requests push out good grammars.

use std::sync::Arc;
use std::time::Instant;

use lexiform::vocab::Vocabulary;
use lexiform::{CompileError, Compiler, Grammar, Options, schema};
use moka::sync::Cache;

use crate::metrics::Metrics;
use crate::wire::constraint::{Constraint, KeyOrder, Source, Whitespace};

/// What a grammar is estimated to hold beside its source: states and masks that fill as it is used.
const BASE_BYTES: u32 = 64 * 1024;
/// How many bytes a compiled grammar is estimated to take for each byte of its source.
const BYTES_PER_SOURCE_BYTE: u32 = 64;

/// What makes two grammars the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    source: Source,
    whitespace: Whitespace,
    key_order: KeyOrder,
}

impl Key {
    fn text(&self) -> &str {
        match &self.source {
            Source::Schema(text) | Source::Regex(text) | Source::Ebnf(text) => text,
        }
    }
}

/// The compiler of one model's vocabulary, with its cache.
pub struct Grammars {
    compiler: Compiler,
    cache: Cache<Key, Grammar>,
}

impl Grammars {
    /// A compiler whose cache is bounded by about this many bytes.
    pub fn new(vocabulary: Arc<Vocabulary>, bytes: u64) -> Self {
        let weigh = |key: &Key, _: &Grammar| {
            let source = u32::try_from(key.text().len()).unwrap_or(u32::MAX);
            BASE_BYTES.saturating_add(source.saturating_mul(BYTES_PER_SOURCE_BYTE))
        };
        Self {
            compiler: Compiler::new(vocabulary),
            cache: Cache::builder().max_capacity(bytes).weigher(weigh).build(),
        }
    }

    /// The grammar of a constraint; blocks while it compiles.
    ///
    /// # Errors
    /// The constraint does not compile.
    pub fn get(&self, constraint: &Constraint, metrics: &Metrics) -> Result<Grammar, Arc<CompileError>> {
        let key = Key {
            source: constraint.source.clone(),
            whitespace: constraint.whitespace.clone(),
            key_order: constraint.key_order,
        };
        if let Some(grammar) = self.cache.get(&key) {
            metrics.grammar_hit();
            return Ok(grammar);
        }
        self.cache.try_get_with_by_ref(&key, || {
            let begun = Instant::now();
            let compiled = compile(constraint, &self.compiler);
            metrics.grammar_compiled(begun.elapsed(), compiled.is_ok());
            compiled
        })
    }
}

/// Compiles a constraint without any cache.
///
/// # Errors
/// The constraint does not compile.
pub fn compile(constraint: &Constraint, compiler: &Compiler) -> Result<Grammar, CompileError> {
    let source = match &constraint.source {
        Source::Schema(text) => lexiform::Source::JsonSchema(text),
        Source::Regex(text) => lexiform::Source::Regex(text),
        Source::Ebnf(text) => lexiform::Source::Ebnf(text),
    };
    let (grammar, _) = compiler.compile(source, &options(constraint))?;
    Ok(grammar)
}

fn options(constraint: &Constraint) -> Options {
    let mut options = Options::default();
    options.schema.whitespace = match &constraint.whitespace {
        Whitespace::Flexible => schema::Whitespace::Flexible,
        Whitespace::Compact => schema::Whitespace::Compact,
        Whitespace::Pattern(pattern) => schema::Whitespace::Pattern(pattern.clone()),
    };
    options.schema.key_order = match constraint.key_order {
        KeyOrder::Schema => schema::KeyOrder::Schema,
        KeyOrder::Any => schema::KeyOrder::Any,
    };
    options
}
