//! Verdicts on texts: whether the value of a JSON text is allowed by a schema, and if not, where and why.

pub(crate) mod answers;
pub(crate) mod project;

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lexiform::error::Place;
use lexiform::limits::{Cancel, Limits};
use lexiform::schema::KeyOrder;
use lexiform::verdict::{Expected, Shown, Verdict, judge_value, pointer};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Options, Source, compile, unless_cancelled};
use napi::Result;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::error::{call_error, cancelled, compile_error};
use crate::options;
use crate::options::{CompileOptions, SourceKind};
use crate::watch::Watch;

/// Judges the value of a JSON text by a schema, and returns the verdict as JSON.
#[napi(catch_unwind)]
pub(crate) fn judge_text(schema: String, options: Option<String>, text: String) -> Result<String> {
    let mut usual = Options::for_judging();
    usual.schema.key_order = KeyOrder::Any;
    let schema = Schema::new(schema, options, usual, "check")?;
    check_length(&text, &Limits::default())?;
    let watch = Watch::new(schema.work, schema.options.timeout, None);
    let verdict = watch.run(|cancel| {
        let grammar = schema.grammar(&cancel)?;
        let verdict = unless_cancelled(&cancel, || judge_value(&grammar, text.as_bytes()));
        verdict.ok_or_else(|| cancelled("the check was cancelled"))
    })?;
    Ok(told(&verdict, &text, true).to_string())
}

/// A schema for texts, without the tokens of a model.
pub(crate) struct Schema {
    text: String,
    /// The options as they were given.
    given: Option<String>,
    options: CompileOptions,
    /// What is done with texts.
    work: &'static str,
}

/// A schema, its options, and what is done with its texts.
type Asked = (String, Option<String>, &'static str);

/// The grammars of the last schemas, which programs pass again and again. They have no masks.
static KNOWN: Mutex<VecDeque<(Asked, lexiform::Grammar)>> = Mutex::new(VecDeque::new());

/// The most grammars that are kept.
const MOST: usize = 16;

/// The longest schema of a grammar that is kept, in bytes.
const LONGEST: usize = 1 << 16;

impl Schema {
    /// Reads the options of a schema, where `usual` are those that are not given.
    ///
    /// # Errors
    /// The first mistake in the options.
    pub(crate) fn new(
        text: String,
        given: Option<String>,
        usual: Options,
        work: &'static str,
    ) -> Result<Schema> {
        let options = options::compile(SourceKind::JsonSchema, given.as_deref(), usual)?;
        Ok(Schema {
            text,
            given,
            options,
            work,
        })
    }

    /// Compiles the schema, or returns its grammar of before.
    ///
    /// # Errors
    /// All problems of the schema.
    pub(crate) fn grammar(&self, cancel: &Cancel) -> Result<lexiform::Grammar> {
        let asked = (self.text.clone(), self.given.clone(), self.work);
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known()
            .iter()
            .find(|(known, _)| *known == asked)
            .map(|(_, grammar)| grammar.fresh());
        if let Some(grammar) = found {
            return Ok(grammar);
        }
        let mut options = self.options.inner.clone();
        options.limits.cancel = cancel.clone();
        let compiled = compile(Source::JsonSchema(&self.text), &VOCABULARY, &options);
        let (grammar, _) = compiled.map_err(|error| compile_error(&error))?;
        if self.text.len() <= LONGEST {
            let mut known = known();
            known.truncate(MOST - 1);
            known.push_front((asked, grammar.fresh()));
        }
        Ok(grammar)
    }
}

/// The vocabulary of grammars for texts, which need no tokens.
static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
    let end = Vocabulary::new(&[(TokenKind::Special, "<end>")], &[0]);
    #[expect(
        clippy::expect_used,
        reason = "one token that ends a sequence is a vocabulary"
    )]
    Arc::new(end.expect("a vocabulary"))
});

/// Checks that a text is not longer than a source may be.
///
/// # Errors
/// It is longer.
pub(crate) fn check_length(text: &str, limits: &Limits) -> Result<()> {
    let (bytes, limit) = (text.len(), limits.source_bytes);
    match bytes > limit {
        true => Err(call_error(format!(
            "the text has {bytes} bytes; the limit `sourceBytes` is {limit}"
        ))),
        false => Ok(()),
    }
}

/// Returns a verdict for JavaScript: null for a text that belongs.
pub(crate) fn told(verdict: &Verdict, text: &str, is_json: bool) -> Value {
    let bytes = text.as_bytes();
    let (Some(kind), Some(offset)) = (verdict.kind(), verdict.offset(bytes)) else {
        return Value::Null;
    };
    let shown = Shown::of(bytes, offset);
    let (line, column) = match shown.place() {
        Place::LineColumn { line, column } => (line, column),
        _ => (1, 1),
    };
    json!({
        "kind": kind,
        "message": verdict.reason(bytes),
        "pointer": is_json.then(|| pointer(bytes, offset)),
        "offset": offset,
        "start": text[..shown.offset].encode_utf16().count(),
        "line": line,
        "column": column,
        "expected": verdict.expected().map(Expected::in_words),
    })
}
