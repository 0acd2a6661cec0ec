//! Small models that draft for the big one: one with the same tokens, which drafts [tokens](same), or with
//! tokens of its own, which drafts [text](other) and tokens that both [share](intersection).

mod intersection;
mod other;
mod reader;
mod same;
mod tokens;
mod translation;

pub use self::translation::OwnTokens;

use self::other::OtherTokens;
use self::same::SameTokens;
use self::translation::Translation;
use crate::config::EngineConfig;
use crate::engine::grammar_task::GrammarTasks;
use crate::error::EngineError;
use crate::model::Model;
use crate::sequence::Sequence;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::Tokenise;
use std::sync::Arc;
use std::time::Duration;

/// A small model that drafts for a big one.
pub struct Assistant {
    /// The model.
    pub model: Box<dyn Model>,
    /// Its tokens, if these may be others than those of the big model; `None` says that they are the same.
    pub tokens: Option<OwnTokens>,
}

impl From<Box<dyn Model>> for Assistant {
    /// A model with the tokens of the big one.
    fn from(model: Box<dyn Model>) -> Self {
        Assistant { model, tokens: None }
    }
}

/// A draft model with its cache.
pub(crate) enum DraftModel {
    Same(SameTokens),
    Other(OtherTokens),
}

impl DraftModel {
    /// # Errors
    /// There is no memory for its cache, or its tokens cannot write what the model writes.
    pub(crate) fn new(
        assistant: Assistant,
        (vocabulary, tokeniser): (Arc<Vocabulary>, Arc<dyn Tokenise + Sync>),
        config: &EngineConfig,
    ) -> Result<Self, EngineError> {
        let Assistant { model, tokens } = assistant;
        match tokens.filter(|tokens| !is_same(&tokens.vocabulary, &vocabulary)) {
            None => Ok(DraftModel::Same(SameTokens::new(model, vocabulary, config)?)),
            Some(own) => {
                let translation = Translation::new(vocabulary.clone(), tokeniser, own)?;
                let other = OtherTokens::new(model, (vocabulary, translation), config)?;
                Ok(DraftModel::Other(other))
            }
        }
    }

    /// Forgets sequences that are gone.
    pub(crate) fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        match self {
            DraftModel::Same(model) => model.retain(alive),
            DraftModel::Other(model) => model.retain(alive),
        }
    }

    /// Empties the cache, which may hold anything after a panic.
    pub(crate) fn reset(&mut self, config: &EngineConfig) {
        match self {
            DraftModel::Same(model) => model.reset(config),
            DraftModel::Other(model) => model.reset(config),
        }
    }

    /// Lengthens the drafts of these sequences, each of which is a chain, as far as each
    /// [reaches](Sequence::reach). A sequence whose grammar is not heard of within the grace drafts no
    /// further. Says how many passes that took.
    pub(crate) fn propose(
        &mut self,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        match self {
            DraftModel::Same(model) => model.propose(sequences, grammar_tasks, grace),
            DraftModel::Other(model) => model.propose(sequences, grammar_tasks, grace),
        }
    }
}

/// Whether two vocabularies number the same tokens in the same way.
fn is_same(one: &Vocabulary, other: &Vocabulary) -> bool {
    let tokens = one.len().max(other.len());
    let mut tokens = 0..u32::try_from(tokens).unwrap_or(u32::MAX);
    tokens.all(|token| one.bytes(token) == other.bytes(token))
}
