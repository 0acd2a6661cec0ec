//! A model that is ready for requests: the running engine, its tokenizer, chat template and defaults.

use std::sync::Arc;

use lexiform::vocab::{Tokenizer, Vocabulary, VocabularyError};
use lexiform_chat::ChatTemplate;
use lexiform_engine::{Assistant, Engine, EngineConfig, Model, OwnTokens, Tokenise, WeightFormat};
use lexiform_syntax::tags::ThoughtMarks;

use crate::grammars::store::{GrammarStore, Shelf};
use crate::grammars::thought;
use crate::grammars::tool_format::{ToolFormat, ToolFormatChoice};
use crate::model::limits::RequestLimits;
use crate::model::text::{ModelText, StartError};
use crate::operate::callbacks::Callbacks;
use crate::operate::metrics::Metrics;
use crate::wire::response::FINGERPRINT;

/// The maximum size of the cache of compiled grammars, in bytes.
const GRAMMAR_CACHE_BYTES: u64 = 256 << 20;

/// Splits text that a grammar forces into the tokens that the model itself would write, so that its draw
/// confirms them.
struct ForcedText(Arc<Tokenizer>);

impl Tokenise for ForcedText {
    fn tokens(&self, bytes: &[u8]) -> Option<Vec<u32>> {
        self.0.encode(std::str::from_utf8(bytes).ok()?).ok()
    }
}

/// Returns the tokens of a draft model with this many rows, which may differ from the tokens of the main
/// model.
///
/// # Errors
/// Fails if the tokenizer does not match the draft model.
pub fn own_tokens(tokenizer: Tokenizer, eos: &[u32], rows: usize) -> Result<OwnTokens, VocabularyError> {
    Ok(OwnTokens {
        vocabulary: Arc::new(tokenizer.vocabulary_with_rows(eos, rows)?),
        tokeniser: Arc::new(ForcedText(Arc::new(tokenizer))),
    })
}

/// Returns an empty shelf for the grammars of models.
pub fn grammar_shelf() -> Arc<Shelf> {
    Arc::new(Shelf::new(GRAMMAR_CACHE_BYTES))
}

/// Returns the format of calls of tools of a model.
fn tool_format(choice: ToolFormatChoice, text: &ModelText) -> ToolFormat {
    choice.with_template(text.template.as_ref().map(ChatTemplate::source))
}

/// Returns the marks of thoughts of a model.
fn thought_marks(format: ToolFormat, text: &ModelText, vocabulary: &Vocabulary) -> Option<ThoughtMarks> {
    thought::marks(
        format,
        text.template.as_ref().map(ChatTemplate::source),
        vocabulary,
    )
}

/// A model with everything that a request needs of it.
pub struct ServedModel {
    name: String,
    created: u64,
    engine: Engine,
    has_draft_model: bool,
    text: ModelText,
    grammars: Arc<GrammarStore>,
    metrics: Arc<Metrics>,
    limits: RequestLimits,
    callbacks: Arc<Callbacks>,
    weights: WeightFormat,
    weight_bytes: u64,
    tool_format: ToolFormat,
    thought_marks: Option<ThoughtMarks>,
    fingerprint: String,
}

impl ServedModel {
    /// Starts the engine of a model that shares its grammars with no other. `eos` are the tokens that end a
    /// text.
    ///
    /// # Errors
    /// Fails if the tokenizer does not match the model, or if the engine cannot start.
    pub fn start(
        name: String,
        model: Box<dyn Model>,
        draft: Option<Assistant>,
        text: ModelText,
        eos: &[u32],
        config: EngineConfig,
    ) -> Result<Self, StartError> {
        Self::start_beside(&grammar_shelf(), name, (model, draft), text, eos, config)
    }

    /// Starts the engine of a model whose grammars are on this shelf.
    ///
    /// # Errors
    /// Fails if the tokenizer does not match the model, or if the engine cannot start.
    pub fn start_beside(
        shelf: &Arc<Shelf>,
        name: String,
        (model, draft): (Box<dyn Model>, Option<Assistant>),
        text: ModelText,
        eos: &[u32],
        config: EngineConfig,
    ) -> Result<Self, StartError> {
        let vocabulary = text.tokenizer.vocabulary_with_rows(eos, model.vocab_size())?;
        let grammars = shelf.store(vocabulary);
        let vocabulary = grammars.vocabulary().clone();
        let cutter = Arc::new(ForcedText(text.tokenizer.clone()));
        let has_draft_model = draft.is_some();
        let engine = Engine::start_with_tokeniser(model, draft, vocabulary, cutter, config)?;
        let metrics = Arc::new(Metrics::new(&name));
        let tool_format = tool_format(ToolFormatChoice::Auto, &text);
        let thought_marks = thought_marks(tool_format, &text, grammars.vocabulary());
        Ok(Self {
            name,
            created: crate::operate::random::now(),
            engine,
            has_draft_model,
            text,
            grammars,
            metrics,
            limits: RequestLimits::default(),
            callbacks: Arc::default(),
            weights: WeightFormat::Stored,
            weight_bytes: 0,
            tool_format,
            thought_marks,
            fingerprint: FINGERPRINT.to_owned(),
        })
    }

    /// Returns the name that requests use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the time at which the model was loaded, in seconds since 1970.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns `true` if a draft model was given for it.
    pub fn has_draft_model(&self) -> bool {
        self.has_draft_model
    }

    /// Returns the tokenizer, template and defaults.
    pub fn text(&self) -> &ModelText {
        &self.text
    }

    /// Returns the vocabulary: the bytes of every token.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.grammars.vocabulary()
    }

    /// Returns the store of grammars: the compiler and its cache.
    pub fn grammars(&self) -> &GrammarStore {
        &self.grammars
    }

    /// Sets the metrics in which it is counted; without this, they begin at zero.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns the marks of a thought before an answer; `None` if the model has no tokens for them.
    pub fn thought_marks(&self) -> Option<ThoughtMarks> {
        self.thought_marks
    }

    /// Sets the limits of requests.
    #[must_use]
    pub fn with_limits(self, limits: RequestLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the callbacks that requests may name; without this, there are none.
    #[must_use]
    pub fn with_callbacks(self, callbacks: impl Into<Arc<Callbacks>>) -> Self {
        Self {
            callbacks: callbacks.into(),
            ..self
        }
    }

    /// Returns the callbacks that requests may name.
    pub fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    /// Sets the format of calls of tools, and of thoughts; without this, it is the one that the chat template
    /// shows.
    #[must_use]
    pub fn with_tool_format(self, choice: ToolFormatChoice) -> Self {
        let tool_format = tool_format(choice, &self.text);
        Self {
            thought_marks: thought_marks(tool_format, &self.text, self.vocabulary()),
            tool_format,
            ..self
        }
    }

    /// Returns the format of calls of tools.
    pub fn tool_format(&self) -> ToolFormat {
        self.tool_format
    }

    /// Sets the format of its weights, and the bytes that they take with those of its draft model; without
    /// this, nothing is known of them.
    #[must_use]
    pub fn with_weights(self, weights: WeightFormat, weight_bytes: u64) -> Self {
        let fingerprint = match weights {
            WeightFormat::Stored => FINGERPRINT.to_owned(),
            rounded => format!("{FINGERPRINT}-{rounded}"),
        };
        Self {
            weights,
            weight_bytes,
            fingerprint,
            ..self
        }
    }

    /// Returns the bytes that its weights take, with those of its draft model; 0 if that is not known.
    pub fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    /// Returns the format of its weights.
    pub fn weights(&self) -> WeightFormat {
        self.weights
    }

    /// Returns the name of the format of its weights, if they were rounded when they were loaded: the model
    /// is then a different one.
    pub fn rounded(&self) -> Option<&'static str> {
        match self.weights {
            WeightFormat::Stored => None,
            rounded => Some(rounded.name()),
        }
    }

    /// Returns the `system_fingerprint` that clients see: the version, and the format of rounded weights.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the limits of requests.
    pub fn limits(&self) -> &RequestLimits {
        &self.limits
    }
}
