//! A model that is ready for requests: the running engine, its tokenizer, chat template and defaults.

use std::sync::Arc;

use lexiform::vocab::{Tokenizer, Vocabulary, VocabularyError};
use lexiform_engine::{Assistant, Engine, EngineConfig, Model, OwnTokens, Tokenise, WeightFormat};

use crate::grammars::language::{END_THINK, THINK};
use crate::grammars::store::GrammarStore;
use crate::grammars::tool_format::{ToolFormat, ToolFormatChoice};
use crate::model::limits::RequestLimits;
use crate::model::template::ChatTemplate;
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

/// Returns the format of calls of tools of a model.
fn tool_format(choice: ToolFormatChoice, text: &ModelText) -> ToolFormat {
    choice.with_template(text.template.as_ref().map(ChatTemplate::source))
}

/// A model with everything that a request needs of it.
pub struct ServedModel {
    name: String,
    created: u64,
    engine: Engine,
    has_draft_model: bool,
    text: ModelText,
    vocabulary: Arc<Vocabulary>,
    grammars: GrammarStore,
    metrics: Metrics,
    limits: RequestLimits,
    callbacks: Callbacks,
    weights: WeightFormat,
    tool_format: ToolFormat,
    fingerprint: String,
}

impl ServedModel {
    /// Starts the engine of a model. `eos` are the tokens that end a text.
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
        let vocabulary = Arc::new(text.tokenizer.vocabulary_with_rows(eos, model.vocab_size())?);
        let cutter = Arc::new(ForcedText(text.tokenizer.clone()));
        let has_draft_model = draft.is_some();
        let engine = Engine::start_with_tokeniser(model, draft, vocabulary.clone(), cutter, config)?;
        let grammars = GrammarStore::new(vocabulary.clone(), GRAMMAR_CACHE_BYTES);
        let metrics = Metrics::new(&name);
        let tool_format = tool_format(ToolFormatChoice::Auto, &text);
        Ok(Self {
            name,
            created: crate::operate::random::now(),
            engine,
            has_draft_model,
            text,
            vocabulary,
            grammars,
            metrics,
            limits: RequestLimits::default(),
            callbacks: Callbacks::default(),
            weights: WeightFormat::Stored,
            tool_format,
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
        &self.vocabulary
    }

    /// Returns the store of grammars: the compiler and its cache.
    pub fn grammars(&self) -> &GrammarStore {
        &self.grammars
    }

    /// Sets whether keys use the grammars that others have had compiled; without this, they do not.
    #[must_use]
    pub fn sharing_grammars(self, shared: bool) -> Self {
        let grammars = self.grammars.shared(shared);
        Self { grammars, ..self }
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns `true` if the model has tokens for a thought before its answer.
    pub fn thinks(&self) -> bool {
        [THINK, END_THINK].iter().all(|mark| {
            let text = self.vocabulary.token_of(mark.as_bytes());
            text.or_else(|| self.vocabulary.special(mark)).is_some()
        })
    }

    /// Sets the limits of requests.
    #[must_use]
    pub fn with_limits(self, limits: RequestLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the callbacks that requests may name; without this, there are none.
    #[must_use]
    pub fn with_callbacks(self, callbacks: Callbacks) -> Self {
        Self { callbacks, ..self }
    }

    /// Returns the callbacks that requests may name.
    pub fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    /// Sets the format of calls of tools; without this, it is the one that the chat template shows.
    #[must_use]
    pub fn with_tool_format(self, choice: ToolFormatChoice) -> Self {
        let tool_format = tool_format(choice, &self.text);
        Self { tool_format, ..self }
    }

    /// Returns the format of calls of tools.
    pub fn tool_format(&self) -> ToolFormat {
        self.tool_format
    }

    /// Sets the format of its weights.
    #[must_use]
    pub fn with_weights(self, weights: WeightFormat) -> Self {
        let fingerprint = match weights {
            WeightFormat::Stored => FINGERPRINT.to_owned(),
            rounded => format!("{FINGERPRINT}-{rounded}"),
        };
        Self {
            weights,
            fingerprint,
            ..self
        }
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
