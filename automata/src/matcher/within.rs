//! Masks within a token budget.

use std::sync::Arc;

use super::{Grammar, State};
use crate::budget::{Budget, Place};
use crate::error::Exhausted;
use crate::mask::Mask;
use crate::pushdown::FINISHED;
use crate::work;

impl Grammar {
    /// Returns the smallest number of tokens that completes the sequence, the end token included: 1 where the
    /// text may end, 0 where it has ended. Returns `None` if no completion was found because the vocabulary
    /// cannot write the missing text, and [`usize::MAX`] if the vocabulary can write all bytes, in which case
    /// the shortest completion is too long to be counted.
    ///
    /// The number is exact for small vocabularies. With a large one, a completion that is longer in bytes but
    /// shorter in tokens may be missed. The number can then be too large, and
    /// [`MaskRequest::within`](super::MaskRequest::within) needs the same number.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use lexiform::{MaskRequest, Options, Source, compile};
    /// # use lexiform::vocab::{TokenKind, Vocabulary};
    /// let tokens = ["<eos>", "ye", "s", "no", "n", "o"].map(|text| (TokenKind::Text, text));
    /// let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
    /// let (grammar, _) = compile(Source::Regex("yes|no"), &vocab, &Options::default())?;
    /// let start = grammar.start();
    /// assert_eq!(grammar.min_completion(start), Some(2));
    /// let request = MaskRequest::from(start);
    /// assert_eq!(grammar.try_mask(request.within(3))?.count(), 3);
    /// assert_eq!(grammar.try_mask(request.within(2))?.iter().collect::<Vec<_>>(), [3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn min_completion(&self, state: State) -> Option<usize> {
        self.try_min_completion(state).unwrap_or(None)
    }

    /// Returns [`min_completion`](Self::min_completion), or the limit that was reached.
    ///
    /// # Errors
    /// Returns an error if computing it costs more than the limits allow.
    pub fn try_min_completion(&self, state: State) -> Result<Option<usize>, Exhausted> {
        if self.is_finished(state) {
            return Ok(Some(0));
        }
        let budget = self.budget()?;
        let text = self.ask(|| budget.tokens(self.place(), state.0))?;
        Ok(match text {
            Some(text) => Some(usize::try_from(text).unwrap_or(usize::MAX).saturating_add(1)),
            // Every compiled grammar can be completed, so the count itself must have overflowed.
            None => budget.writes_all().then_some(usize::MAX),
        })
    }

    /// Returns the mask of a state within a budget, and `true` if the budget removed any token.
    pub(super) fn within_budget(
        &self,
        state: State,
        budget: Option<usize>,
    ) -> Result<(Arc<Mask>, bool), Exhausted> {
        let Some(budget) = budget.filter(|_| state.0 != FINISHED) else {
            return Ok((self.mask_of_tokens(state)?, false));
        };
        let mask = self.mask_of_bytes(state)?;
        let narrowed = match budget.checked_sub(2) {
            None => Some(self.only_the_end(state, budget)),
            Some(limit) => self.narrowed(state, &mask, limit as u64)?,
        };
        Ok(match narrowed {
            Some(narrowed) if narrowed.count() < mask.count() => (Arc::new(narrowed), true),
            _ => (mask, false),
        })
    }

    /// Returns the mask without the tokens after which more than `limit` tokens are needed; `None` if it is
    /// unchanged.
    fn narrowed(&self, state: State, mask: &Mask, limit: u64) -> Result<Option<Mask>, Exhausted> {
        let (budget, place) = (self.budget()?, self.place());
        let narrowed = self.ask(|| budget.narrowed(place, state.0, mask, limit));
        let Err(exhausted) = narrowed else { return narrowed };
        let closing = self.ask(|| budget.closing(place, state.0, mask, limit))?;
        match closing.count() {
            0 => Err(exhausted),
            _ => Ok(Some(closing)),
        }
    }

    /// Returns `true` if at most `budget` more tokens can complete the sequence, its end token included, so
    /// that a [mask within the budget](super::MaskRequest::within) allows some token. Cheaper than computing
    /// the number in clear cases.
    pub fn completes_within(&self, state: State, budget: usize) -> bool {
        match budget.checked_sub(1) {
            _ if self.is_finished(state) => true,
            None => false,
            Some(text) => {
                let within = |budget: &Budget| budget.within(self.place(), state.0, text as u64);
                let answer = self.budget().and_then(|budget| self.ask(|| within(budget)));
                answer.unwrap_or(false)
            }
        }
    }

    /// Returns the mask of a state without a budget: the tokens after which tokens complete the text.
    pub(super) fn mask_of_tokens(&self, state: State) -> Result<Arc<Mask>, Exhausted> {
        let mask = self.mask_of_bytes(state)?;
        if self.inner.spells_all || self.is_finished(state) {
            return Ok(mask);
        }
        let budget = self.budget()?;
        let spelled = self.ask(|| budget.spelled(self.place(), state.0, &mask))?;
        Ok(spelled.map_or(mask, Arc::new))
    }

    /// Returns `true` if tokens can complete the text.
    pub(super) fn is_spelled(&self, state: State) -> Result<bool, Exhausted> {
        if self.inner.spells_all || self.is_finished(state) {
            return Ok(true);
        }
        let budget = self.budget()?;
        self.ask(|| budget.is_spelled(self.place(), state.0))
    }

    fn only_the_end(&self, state: State, budget: usize) -> Mask {
        let mut mask = Mask::empty(self.vocabulary().len());
        if budget > 0 && self.is_accepting(state) {
            mask.insert_all(self.vocabulary().eos());
        }
        mask
    }

    fn budget(&self) -> Result<&Budget, Exhausted> {
        let inner = &self.inner;
        let find = || Budget::new(self.place(), inner.shares.budget);
        let budget = inner
            .budget
            .get_or_init(|| work::within(inner.allowances.distances, find));
        budget.as_ref().map_err(|exhausted| *exhausted)
    }

    fn place(&self) -> Place<'_> {
        Place {
            machine: &self.inner.machine,
            tables: &self.inner.tables,
            specials: &self.inner.specials,
        }
    }
}
