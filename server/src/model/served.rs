//! A model that is ready to be asked: the running engine, its tokenizer, chat template and defaults.

use std::sync::Arc;

use lexiform::vocab::{Tokenizer, Vocabulary, VocabularyError};
use lexiform_engine::{Assistant, Engine, EngineConfig, Model, OwnTokens, Tokenise, WeightFormat};

use crate::grammars::language::{END_THINK, THINK};
use crate::grammars::store::GrammarStore;
use crate::model::limits::RequestLimits;
use crate::model::text::{ModelText, StartError};
use crate::operate::metrics::Metrics;
use crate::wire::response::FINGERPRINT;

/// The bytes that the cache of compiled grammars may take.
const GRAMMAR_CACHE_BYTES: u64 = 256 << 20;

/// Cuts text that a grammar forces into the tokens that the model itself would write, so that its draw
/// confirms them.
struct ForcedText(Arc<Tokenizer>);

impl Tokenise for ForcedText {
    fn tokens(&self, bytes: &[u8]) -> Option<Vec<u32>> {
        self.0.encode(std::str::from_utf8(bytes).ok()?).ok()
    }
}

/// The tokens of a draft model of so many rows, which may be others than those of the model that it drafts
/// for.
///
/// # Errors
/// The tokenizer and the draft model do not fit together.
pub fn own_tokens(tokenizer: Tokenizer, eos: &[u32], rows: usize) -> Result<OwnTokens, VocabularyError> {
    Ok(OwnTokens {
        vocabulary: Arc::new(tokenizer.vocabulary_with_rows(eos, rows)?),
        tokeniser: Arc::new(ForcedText(Arc::new(tokenizer))),
    })
}

/// A model with everything that a request needs of it.
pub struct ServedModel {
    name: String,
    created: u64,
    engine: Engine,
    text: ModelText,
    vocabulary: Arc<Vocabulary>,
    grammars: GrammarStore,
    metrics: Metrics,
    queue: usize,
    limits: RequestLimits,
    weights: WeightFormat,
    fingerprint: String,
}

impl ServedModel {
    /// Starts the engine of a model. `eos` are the tokens that end a text.
    ///
    /// # Errors
    /// The tokenizer and the model do not fit together, or the engine cannot start.
    pub fn start(
        name: String,
        model: Box<dyn Model>,
        draft: Option<Assistant>,
        text: ModelText,
        eos: &[u32],
        config: EngineConfig,
    ) -> Result<Self, StartError> {
        let vocabulary = Arc::new(text.tokenizer.vocabulary_with_rows(eos, model.vocab_size())?);
        let queue = config.max_waiting;
        let cutter = Arc::new(ForcedText(text.tokenizer.clone()));
        let engine = Engine::start_with_tokeniser(model, draft, vocabulary.clone(), cutter, config)?;
        let grammars = GrammarStore::new(vocabulary.clone(), GRAMMAR_CACHE_BYTES);
        let metrics = Metrics::default();
        Ok(Self {
            name,
            created: crate::operate::random::now(),
            engine,
            text,
            vocabulary,
            grammars,
            metrics,
            queue,
            limits: RequestLimits::default(),
            weights: WeightFormat::Stored,
            fingerprint: FINGERPRINT.to_owned(),
        })
    }

    /// The name that requests use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it was loaded, in seconds since 1970.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The tokenizer, template and defaults.
    pub fn text(&self) -> &ModelText {
        &self.text
    }

    /// The bytes of every token.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The compiler and its cache.
    pub fn grammars(&self) -> &GrammarStore {
        &self.grammars
    }

    /// The counters.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Whether the model has tokens for a thought before its answer.
    pub fn thinks(&self) -> bool {
        [THINK, END_THINK].iter().all(|mark| {
            let text = self.vocabulary.token_of(mark.as_bytes());
            text.or_else(|| self.vocabulary.special(mark)).is_some()
        })
    }

    /// Gives requests other times than the usual ones.
    #[must_use]
    pub fn with_limits(self, limits: RequestLimits) -> Self {
        Self { limits, ..self }
    }

    /// Says how its weights are kept.
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

    /// How its weights are kept.
    pub fn weights(&self) -> WeightFormat {
        self.weights
    }

    /// The name of the format of its weights, if they were rounded when they were loaded: then what answers
    /// is another model.
    pub fn rounded(&self) -> Option<&'static str> {
        match self.weights {
            WeightFormat::Stored => None,
            rounded => Some(rounded.name()),
        }
    }

    /// What clients see as `system_fingerprint`: the version, and the format of rounded weights.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// How long requests may take.
    pub fn limits(&self) -> &RequestLimits {
        &self.limits
    }

    /// How many requests may wait.
    pub fn queue(&self) -> usize {
        self.queue
    }
}
