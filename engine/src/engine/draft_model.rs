//! Small models that draft for the main one: a model with the same tokens drafts [tokens](same), or several
//! [at once](parallel); a model with a different vocabulary drafts [text](other) and the tokens that both
//! [share](intersection); a [head](heads) was trained to draft from the hidden states of the main model.

mod heads;
mod intersection;
mod other;
mod parallel;
mod reader;
mod same;
mod tokens;
mod translation;
mod trees;

pub use self::translation::OwnTokens;

use self::heads::HeadDrafter;
use self::other::OtherTokens;
use self::parallel::ParallelTokens;
use self::same::SameTokens;
use self::translation::Translation;
use crate::config::EngineConfig;
use crate::engine::grammar_task::GrammarTasks;
use crate::error::EngineError;
use crate::model::Model;
use crate::model::head::Head;
use crate::sequence::Sequence;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::Tokenise;
use std::sync::Arc;
use std::time::Duration;

/// What drafts for the main model.
pub enum Assistant {
    /// A small model.
    Model {
        /// The model.
        model: Box<dyn Model>,
        /// The model's own tokens, if they may differ from those of the main model; `None` if they are the
        /// same.
        tokens: Option<OwnTokens>,
        /// The token that stands for one that is not known, if the model was trained to predict several
        /// tokens at once: PARD ([An et al. 2025](https://arxiv.org/abs/2504.18583)). It needs the tokens of
        /// the main model.
        mask: Option<u32>,
    },
    /// A head that was trained for the main model, which must keep the hidden states that the head reads.
    Head(Box<dyn Head>),
}

impl From<Box<dyn Model>> for Assistant {
    /// Returns an assistant with the tokens of the main model.
    fn from(model: Box<dyn Model>) -> Self {
        Assistant::Model {
            model,
            tokens: None,
            mask: None,
        }
    }
}

/// A draft model with its cache.
pub(crate) enum DraftModel {
    Same(SameTokens),
    Other(OtherTokens),
    Parallel(ParallelTokens),
    Head(HeadDrafter),
}

impl DraftModel {
    /// # Errors
    /// Fails if there is no memory for its cache, if its tokens cannot write what the model writes, or if a
    /// head reads states that the model does not keep.
    pub(crate) fn new(
        assistant: Assistant,
        target: &dyn Model,
        (vocabulary, tokeniser): (Arc<Vocabulary>, Arc<dyn Tokenise + Sync>),
        config: &EngineConfig,
    ) -> Result<Self, EngineError> {
        let (model, tokens, mask) = match assistant {
            Assistant::Model { model, tokens, mask } => (model, tokens, mask),
            Assistant::Head(head) => {
                return Ok(DraftModel::Head(HeadDrafter::new(
                    head, target, vocabulary, config,
                )?));
            }
        };
        let other = tokens.filter(|tokens| !is_same(&tokens.vocabulary, &vocabulary));
        match (other, mask) {
            (None, None) => Ok(DraftModel::Same(SameTokens::new(model, vocabulary, config)?)),
            (None, Some(mask)) => {
                let parallel = ParallelTokens::new(model, mask, vocabulary, config)?;
                Ok(DraftModel::Parallel(parallel))
            }
            (Some(_), Some(_)) => Err(EngineError::Config(
                "a draft model that predicts several tokens at once needs the tokens of the model".to_owned(),
            )),
            (Some(own), None) => {
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
            DraftModel::Parallel(model) => model.retain(alive),
            DraftModel::Head(model) => model.retain(alive),
        }
    }

    /// Empties the cache, whose contents are undefined after a panic.
    pub(crate) fn reset(&mut self, config: &EngineConfig) {
        match self {
            DraftModel::Same(model) => model.reset(config),
            DraftModel::Other(model) => model.reset(config),
            DraftModel::Parallel(model) => model.reset(config),
            DraftModel::Head(model) => model.reset(config),
        }
    }

    /// Returns the number of tokens that the model can read, if its rows can be contrasted with: if it has
    /// the tokens of the main model, and predicts one at a time.
    pub(crate) fn context(&self) -> Option<usize> {
        match self {
            DraftModel::Same(model) => Some(model.context()),
            DraftModel::Other(_) | DraftModel::Parallel(_) | DraftModel::Head(_) => None,
        }
    }

    /// Returns the rows after the text of each sequence and after each of its drafts.
    ///
    /// # Errors
    /// Fails if the model does, or if it is one whose rows cannot be contrasted with.
    pub(crate) fn rows(
        &mut self,
        sequences: &mut [&mut Sequence],
    ) -> Result<Vec<Vec<Vec<f32>>>, EngineError> {
        match self {
            DraftModel::Same(model) => model.rows(sequences),
            DraftModel::Other(_) | DraftModel::Parallel(_) | DraftModel::Head(_) => Err(EngineError::Model(
                "the draft model does not predict the model's tokens one by one".to_owned(),
            )),
        }
    }

    /// Extends the drafts of these sequences, after the tip of each, as far as each
    /// [reaches](crate::sequence::parts::DraftState::reach). A sequence whose grammar does not answer within
    /// the grace period drafts no further. `target` is the main model, whose states a head reads. Returns the
    /// number of passes that this took.
    pub(crate) fn propose(
        &mut self,
        target: &dyn Model,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        match self {
            DraftModel::Same(model) => model.propose(sequences, grammar_tasks, grace),
            DraftModel::Other(model) => model.propose(sequences, grammar_tasks, grace),
            DraftModel::Parallel(model) => model.propose(sequences, grammar_tasks, grace),
            DraftModel::Head(model) => model.propose(target, sequences, grammar_tasks, grace),
        }
    }
}

/// Returns `true` if two vocabularies have the same tokens with the same numbers.
fn is_same(one: &Vocabulary, other: &Vocabulary) -> bool {
    let tokens = one.len().max(other.len());
    let mut tokens = 0..u32::try_from(tokens).unwrap_or(u32::MAX);
    tokens.all(|token| one.bytes(token) == other.bytes(token))
}
