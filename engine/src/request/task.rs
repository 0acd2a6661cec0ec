//! The task of a request: drawing from a law, searching for likely texts, or weighing given ones.

use super::options::Options;
use super::search::Search;
use lexiform_law::Law;
use std::sync::Arc;

/// The task that a request performs on its prompt.
#[derive(Clone, Debug)]
pub enum Task {
    /// Draws answers from a law.
    Draw(Draw),
    /// Searches for likely texts. The result is deterministic, except with [`Search::Cntp`].
    Search {
        /// The search.
        search: Search,
        /// The number of answers.
        answers: usize,
    },
    /// Computes how likely given texts are to follow the prompt. Nothing is drawn.
    Weigh(Weigh),
}

/// The settings of drawn answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// The law that they are drawn from. Without a grammar all laws over whole texts are the model's own.
    pub law: Law,
    /// The number of answers: independent samples after the one prompt, which is read once. Each has its own
    /// random stream, so that the answers of different seeds are also independent.
    pub answers: usize,
    /// Draws this many candidates, and answers with those that have the highest mean log-probability per
    /// token under the model. Such an answer has no simple law, and nothing of it is reported before all
    /// candidates have ended.
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

/// The texts to weigh. The answer of such a request is the list
/// [`Outcome::options`](super::Outcome::options);
/// [`AnswerLimits::max_tokens`](super::AnswerLimits::max_tokens) must suffice for the longest text.
#[derive(Clone, Debug)]
pub struct Weigh {
    /// The texts.
    pub options: Arc<Options>,
    /// The number of likeliest texts to return, if not all. They are found without weighing texts that begin
    /// with something less likely than they are. Each option must be one token sequence.
    pub likeliest: Option<usize>,
}

impl Task {
    /// Returns the number of answers.
    pub fn answers(&self) -> usize {
        match self {
            Task::Draw(draw) => draw.answers,
            Task::Search { answers, .. } => *answers,
            Task::Weigh(_) => 1,
        }
    }

    /// Returns the texts to weigh.
    pub(crate) fn options(&self) -> Option<&Arc<Options>> {
        match self {
            Task::Weigh(weigh) => Some(&weigh.options),
            Task::Draw(_) | Task::Search { .. } => None,
        }
    }

    /// Returns the search.
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
