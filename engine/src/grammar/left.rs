//! The number of tokens that are left at a place: of the answer, and of the text before it.

use crate::request::PreambleBudget;
use crate::{Grammar, State};
use lexiform::error::Exhausted;
use lexiform::vocab::Vocabulary;
use std::sync::Arc;

/// The number of tokens that the masks may spend at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Those of the whole answer, the end included; `None` if they are not counted.
    pub(crate) answer: Option<usize>,
    /// Those that the limit of the preamble leaves, if the place is in one.
    preamble: Option<usize>,
}

impl Left {
    /// Returns the number after these more tokens, given the numbers before them.
    pub(crate) fn after(
        budget: Option<usize>,
        preamble: Option<&PreambleBudget>,
        ahead: &[u32],
        vocabulary: Option<&Arc<Vocabulary>>,
    ) -> Self {
        let counted = preamble.zip(vocabulary);
        Left {
            answer: budget.map(|budget| budget.saturating_sub(ahead.len())),
            preamble: counted.and_then(|(preamble, vocabulary)| preamble.left(ahead, vocabulary)),
        }
    }

    /// Returns the fewer of both; `None` if any number will do.
    pub(crate) fn tokens(self) -> Option<usize> {
        self.answer.into_iter().chain(self.preamble).min()
    }

    /// Returns `true` if the limit of the preamble leaves fewer tokens than that of the answer.
    pub(crate) fn is_preamble(self) -> bool {
        self.preamble
            .is_some_and(|text| self.answer.is_none_or(|answer| text < answer))
    }

    /// Returns the number at a state of the grammar. If a token wrote the opening mark together with text
    /// that takes longer to complete than the limit of the preamble says, it is what that takes.
    pub(crate) fn at(self, grammar: &Grammar, state: State) -> Result<Option<usize>, Exhausted> {
        match self.tokens() {
            Some(tokens) if self.is_preamble() && !grammar.completes_within(state, tokens) => {
                let needed = grammar.try_min_completion(state)?;
                Ok(needed.into_iter().chain(self.answer).min())
            }
            tokens => Ok(tokens),
        }
    }
}
