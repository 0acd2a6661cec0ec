//! Small models that draft for the main one: a model with the same tokens drafts [tokens](same); a model
//! with a different vocabulary drafts [text](other) and the tokens that both [share](intersection).

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

/// A small model that drafts for the main one.
pub struct Assistant {
    /// The model.
    pub model: Box<dyn Model>,
    /// The model's own tokens, if they may differ from those of the main model; `None` if they are the same.
    pub tokens: Option<OwnTokens>,
}

impl From<Box<dyn Model>> for Assistant {
    /// Returns an assistant with the tokens of the main model.
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
    /// Fails if there is no memory for its cache, or if its tokens cannot write what the model writes.
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

    /// Forgets sequences that have ended.
    pub(crate) fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        match self {
            DraftModel::Same(model) => model.retain(alive),
            DraftModel::Other(model) => model.retain(alive),
        }
    }

    /// Empties the cache, whose contents are undefined after a panic.
    pub(crate) fn reset(&mut self, config: &EngineConfig) {
        match self {
            DraftModel::Same(model) => model.reset(config),
            DraftModel::Other(model) => model.reset(config),
        }
    }

    /// Extends the drafts of these sequences, after the tip of each, as far as each
    /// [reaches](crate::sequence::parts::DraftState::reach). A sequence whose grammar does not answer within
    /// the grace period drafts no further. Returns the number of passes that this took.
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

/// Returns `true` if two vocabularies have the same tokens with the same numbers.
fn is_same(one: &Vocabulary, other: &Vocabulary) -> bool {
    let tokens = one.len().max(other.len());
    let mut tokens = 0..u32::try_from(tokens).unwrap_or(u32::MAX);
    tokens.all(|token| one.bytes(token) == other.bytes(token))
}
