//! The task of a request: drawing from a law, searching for likely texts, or weighing given ones.

use super::options::Options;
use super::search::Search;
use lexiform_law::Law;
use std::sync::Arc;

/// What a request does with its prompt.
#[derive(Clone, Debug)]
pub enum Task {
    /// Draws answers from a law.
    Draw(Draw),
    /// Searches for likely texts. Nothing is left to chance, but by [`Search::Cntp`].
    Search {
        /// The search.
        search: Search,
        /// The number of answers.
        answers: usize,
    },
    /// Finds out how likely given texts are to follow the prompt. Nothing is drawn.
    Weigh(Weigh),
}

/// Answers that are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// The law that they are drawn from. Without a grammar all laws about whole texts are the model's own.
    pub law: Law,
    /// The number of answers: independent samples after the one prompt, which is read once. Each draws from
    /// random numbers of its own, so that the answers of different seeds have nothing in common either.
    pub answers: usize,
    /// Draws this many candidates, and answers with those that the model finds likeliest for each token of
    /// theirs. Such an answer is of no simple law, and nothing of it is reported before all candidates have
    /// ended.
    pub best_of: Option<usize>,
}

impl Default for Draw {
    /// One answer of the local law.
    fn default() -> Self {
        Draw {
            law: Law::Local,
            answers: 1,
            best_of: None,
        }
    }
}

/// Texts that are weighed. The answer of such a request is the list
/// [`Outcome::options`](super::Outcome::options);
/// [`AnswerLimits::max_tokens`](super::AnswerLimits::max_tokens) must be enough for the longest text.
#[derive(Clone, Debug)]
pub struct Weigh {
    /// The texts.
    pub options: Arc<Options>,
    /// Of the texts, only this many of the likeliest are wanted. They are found without weighing those that
    /// begin with what is less likely than they are. Each option must be one token sequence.
    pub likeliest: Option<usize>,
}

impl Task {
    /// The number of answers.
    pub fn answers(&self) -> usize {
        match self {
            Task::Draw(draw) => draw.answers,
            Task::Search { answers, .. } => *answers,
            Task::Weigh(_) => 1,
        }
    }

    /// The texts that are weighed.
    pub(crate) fn options(&self) -> Option<&Arc<Options>> {
        match self {
            Task::Weigh(weigh) => Some(&weigh.options),
            Task::Draw(_) | Task::Search { .. } => None,
        }
    }

    /// The search.
    pub(crate) fn search(&self) -> Option<&Search> {
        match self {
            Task::Search { search, .. } => Some(search),
            Task::Draw(_) | Task::Weigh(_) => None,
        }
    }
}

impl Default for Task {
    /// One answer of the local law.
    fn default() -> Self {
        Task::Draw(Draw::default())
    }
}

impl From<Draw> for Task {
    fn from(draw: Draw) -> Self {
        Task::Draw(draw)
    }
}

impl From<Law> for Task {
    /// One answer of the law.
    fn from(law: Law) -> Self {
        Task::Draw(Draw {
            law,
            ..Draw::default()
        })
    }
}

impl From<Weigh> for Task {
    fn from(weigh: Weigh) -> Self {
        Task::Weigh(weigh)
    }
}
