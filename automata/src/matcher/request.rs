//! Masks for one request: a state, the budget that is left of it, and the tokens that end it.

use std::sync::Arc;

use super::{Ends, Grammar, State};
use crate::error::Exhausted;
use crate::mask::Mask;
use crate::pushdown::FINISHED;

/// What a mask is asked for. A [`State`] alone is a request without a budget, for the ends of the vocabulary.
///
/// ```
/// # use std::sync::Arc;
/// # use lexiform::{MaskRequest, Options, Source, compile};
/// # use lexiform::vocab::{TokenKind, Vocabulary};
/// let tokens = ["<eos>", "ye", "s", "no", "n", "o"].map(|text| (TokenKind::Text, text));
/// let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
/// let (grammar, _) = compile(Source::Regex("yes|no"), &vocab, &Options::default())?;
/// let start = MaskRequest::from(grammar.start());
/// assert_eq!(grammar.try_mask(start)?.count(), 3);
/// assert_eq!(grammar.try_mask(start.within(2))?.iter().collect::<Vec<_>>(), [3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MaskRequest<'e> {
    /// The state of the sequence.
    pub state: State,
    /// The most tokens that the sequence may still take, its end token included; `None` for no limit.
    pub budget: Option<usize>,
    /// The tokens that end the sequence; `None` for those of the vocabulary.
    pub ends: Option<&'e Ends>,
}

impl From<State> for MaskRequest<'_> {
    fn from(state: State) -> Self {
        MaskRequest {
            state,
            budget: None,
            ends: None,
        }
    }
}

impl<'e> MaskRequest<'e> {
    /// The same request within a budget: the whole sequence, its end token included, takes at most so many
    /// tokens more.
    ///
    /// Wherever the budget is at least [`Grammar::min_completion`], and that could be counted, some token is
    /// allowed, and each that is allowed leads to where the budget less one is at least that: drawing from
    /// these masks always ends in time. Where the budget is ample, the mask is that without one, at the cost
    /// of a comparison. Near the end a text stays inside its current value or takes the shortest way out:
    /// where many tokens leave the value, or to judge them costs more than
    /// [`Limits::mask_work`](crate::limits::Limits::mask_work), only those along one completion are allowed.
    pub fn within(self, budget: impl Into<Option<usize>>) -> Self {
        MaskRequest {
            budget: budget.into(),
            ..self
        }
    }

    /// The same request with tokens of its own that end the sequence.
    pub fn ending(self, ends: impl Into<Option<&'e Ends>>) -> Self {
        MaskRequest {
            ends: ends.into(),
            ..self
        }
    }
}

impl Grammar {
    /// The mask of a request, or the limit that it would break.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use lexiform::{Options, Source, compile};
    /// # use lexiform::vocab::{TokenKind, Vocabulary};
    /// # let tokens = ["<eos>", "a", "b"].map(|text| (TokenKind::Text, text));
    /// # let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
    /// let mut options = Options::default();
    /// options.limits.mask_work = 2;
    /// let (grammar, _) = compile(Source::Ebnf("root ::= root root | 'a' | 'b' root"), &vocab, &options)?;
    /// let refused = grammar.try_mask(grammar.start()).unwrap_err();
    /// assert_eq!((refused.limit, refused.allowed), ("mask_work", 2));
    /// assert!(grammar.mask(grammar.start()).iter().next().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the mask, or what the budget takes away from it, costs more than the limits allow. Nothing is
    /// known of what may come next then.
    pub fn try_mask<'e>(&self, request: impl Into<MaskRequest<'e>>) -> Result<Arc<Mask>, Exhausted> {
        Ok(self.steered_mask(request)?.0)
    }

    /// The mask of a request, and whether its budget took any token away: whether the text is steered towards
    /// its end.
    ///
    /// # Errors
    /// Those of [`try_mask`](Self::try_mask).
    pub fn steered_mask<'e>(
        &self,
        request: impl Into<MaskRequest<'e>>,
    ) -> Result<(Arc<Mask>, bool), Exhausted> {
        let request = request.into();
        let (mut mask, is_steered) = self.within_budget(request.state, request.budget)?;
        for (token, is_allowed) in self.changes(&request, &mask)? {
            match is_allowed {
                true => Arc::make_mut(&mut mask).insert(token),
                false => Arc::make_mut(&mut mask).remove_all(&[token]),
            }
        }
        Ok((mask, is_steered))
    }

    /// Writes the mask of a request into a buffer, a bit a token: words beyond the mask are cleared, missing
    /// ones are left out.
    ///
    /// # Errors
    /// Those of [`try_mask`](Self::try_mask). The buffer is cleared then.
    pub fn fill<'e>(&self, request: impl Into<MaskRequest<'e>>, words: &mut [u32]) -> Result<(), Exhausted> {
        self.try_fill(&request.into(), words)
            .inspect_err(|_| words.fill(0))
    }

    fn try_fill(&self, request: &MaskRequest<'_>, words: &mut [u32]) -> Result<(), Exhausted> {
        let (mask, _) = self.within_budget(request.state, request.budget)?;
        mask.copy_to(words);
        for (token, is_allowed) in self.changes(request, &mask)? {
            if let Some(word) = words.get_mut(token as usize / 32) {
                *word = *word & !(1 << (token % 32)) | u32::from(is_allowed) << (token % 32);
            }
        }
        Ok(())
    }

    /// The tokens of which a mask says something else than the ends of a request, each with what they say.
    fn changes(&self, request: &MaskRequest<'_>, mask: &Mask) -> Result<Vec<(u32, bool)>, Exhausted> {
        let MaskRequest { state, budget, ends } = *request;
        let Some(ends) = ends.filter(|_| state.0 != FINISHED) else {
            return Ok(Vec::new());
        };
        let may_end = budget != Some(0) && self.is_accepting(state);
        let mut changes: Vec<(u32, bool)> = ends.tokens().iter().map(|&token| (token, may_end)).collect();
        for &token in self.vocabulary().eos() {
            if !ends.contains(token) {
                changes.push((token, self.may_come_by_name(state, token, budget)?));
            }
        }
        changes.retain(|&(token, is_allowed)| mask.contains(token) != is_allowed);
        Ok(changes)
    }

    /// Whether a token of the vocabulary's ends may come because the grammar names it.
    fn may_come_by_name(&self, state: State, token: u32, budget: Option<usize>) -> Result<bool, Exhausted> {
        let next = self.ask(|| self.step_named(state, token))?;
        Ok(match (next, budget) {
            (Some(next), Some(budget)) => {
                let left = budget.checked_sub(1);
                left.is_some_and(|left| self.completes_within(next, left))
            }
            (next, _) => next.is_some(),
        })
    }
}
