//! Mask requests: a state, its remaining budget, and the tokens that end the sequence.

use std::sync::Arc;

use super::{Ends, Grammar, State};
use crate::error::Exhausted;
use crate::mask::Mask;
use crate::pushdown::FINISHED;

/// A request for a mask. A [`State`] alone is a request without a budget, for the end tokens of the
/// vocabulary.
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
    /// The maximum number of further tokens of the sequence, its end token included; `None` for no limit.
    pub budget: Option<usize>,
    /// The tokens that end the sequence; `None` for the vocabulary's own.
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
    /// Sets the budget: the rest of the sequence, its end token included, takes at most this many tokens.
    ///
    /// If the budget is at least [`Grammar::min_completion`], and that number could be computed, some token
    /// is allowed, and each allowed token leads to a state for which this holds again with a budget that is
    /// smaller by one: sampling from these masks always ends in time. Where the budget is ample, the mask
    /// equals the one without a budget, at the cost of a comparison. Near the end, a text stays inside its
    /// current value or takes the shortest way out: if many tokens leave the value, or if judging them costs
    /// more than [`Limits::mask_work`](crate::limits::Limits::mask_work), only the tokens along one
    /// completion are allowed.
    pub fn within(self, budget: impl Into<Option<usize>>) -> Self {
        MaskRequest {
            budget: budget.into(),
            ..self
        }
    }

    /// Sets the tokens that end the sequence; `None` for the vocabulary's own.
    pub fn ending(self, ends: impl Into<Option<&'e Ends>>) -> Self {
        MaskRequest {
            ends: ends.into(),
            ..self
        }
    }
}

impl Grammar {
    /// Returns the mask of a request, or the limit that was reached.
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
    /// Returns an error if the mask, or the effect of the budget on it, costs more than the limits allow. The
    /// tokens that may come next are then unknown.
    pub fn try_mask<'e>(&self, request: impl Into<MaskRequest<'e>>) -> Result<Arc<Mask>, Exhausted> {
        Ok(self.steered_mask(request)?.0)
    }

    /// Returns the mask of a request, and `true` if its budget removed any token, which steers the text
    /// towards its end.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`try_mask`](Self::try_mask).
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

    /// Writes the mask of a request into a buffer, one bit per token. Words beyond the mask are cleared; a
    /// mask longer than the buffer is cut off.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`try_mask`](Self::try_mask). The buffer is then cleared.
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

    /// Returns the tokens whose bits in `mask` the end tokens of a request change, each with its new value.
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

    /// Returns `true` if an end token of the vocabulary may come next because the grammar names it.
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
