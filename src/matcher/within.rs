//! Masks within a budget of tokens.

use std::sync::Arc;

use super::{Grammar, State};
use crate::budget::{Budget, Place};
use crate::machine::FINISHED;
use crate::mask::Mask;

impl Grammar {
    /// The fewest tokens that complete the sequence from here, the end token among them: 1 where the text may end, 0
    /// where it has ended. `None` where no way was found, because the vocabulary cannot write what is missing;
    /// [`usize::MAX`] where it can write all bytes, so that the shortest completion is longer than can be counted.
    ///
    /// Exact for small vocabularies; with a large one a completion that is longer in bytes but shorter in tokens may
    /// be missed, so that the number can be too great, and is then what [`mask_within`](Self::mask_within) needs too.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use lexiform::{Options, Source, compile};
    /// # use lexiform::vocab::{TokenKind, Vocabulary};
    /// let tokens = ["<eos>", "ye", "s", "no", "n", "o"].map(|text| (TokenKind::Text, text));
    /// let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
    /// let (grammar, _) = compile(Source::Regex("yes|no"), &vocab, &Options::default())?;
    /// let start = grammar.start();
    /// assert_eq!(grammar.min_completion(start), Some(2));
    /// assert_eq!(grammar.mask_within(start, 3).count(), 3);
    /// assert_eq!(grammar.mask_within(start, 2).iter().collect::<Vec<_>>(), [3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn min_completion(&self, state: State) -> Option<usize> {
        if self.is_finished(state) {
            return Some(0);
        }
        match self.budget().tokens(self.place(), state.0) {
            Some(text) => Some(usize::try_from(text).unwrap_or(usize::MAX).saturating_add(1)),
            // Whatever compiles can be completed, so it is the count that ended.
            None => self.budget().writes_all(self.place()).then_some(usize::MAX),
        }
    }

    /// The tokens that may come next if the whole sequence, its end token included, is to take at most `budget` more.
    ///
    /// Wherever `budget` is at least [`min_completion`](Self::min_completion), and that could be counted, some token is allowed, and each that is
    /// allowed leads to where `budget - 1` is at least that: drawing from these masks always ends in time. Where the
    /// budget is ample this is [`mask`](Self::mask) itself, at the cost of a comparison.
    pub fn mask_within(&self, state: State, budget: usize) -> Arc<Mask> {
        self.mask_steered(state, budget).0
    }

    /// [`mask_within`](Self::mask_within), and whether the budget took any token away from [`mask`](Self::mask): whether
    /// who draws from it is steered towards the end.
    pub fn mask_steered(&self, state: State, budget: usize) -> (Arc<Mask>, bool) {
        let mask = self.mask(state);
        if state.0 == FINISHED {
            return (mask, false);
        }
        let narrowed = match budget.checked_sub(2) {
            None => Some(self.only_the_end(state, budget)),
            Some(limit) => self.budget().narrowed(self.place(), state.0, &mask, limit as u64),
        };
        match narrowed {
            Some(narrowed) if narrowed.count() < mask.count() => (Arc::new(narrowed), true),
            _ => (mask, false),
        }
    }

    /// Whether the sequence can be completed with at most `budget` more tokens, its end token included: whether
    /// [`mask_within`](Self::mask_within) allows any. Cheaper than the number, where the answer is plain.
    pub fn completes_within(&self, state: State, budget: usize) -> bool {
        match budget.checked_sub(1) {
            _ if self.is_finished(state) => true,
            None => false,
            Some(text) => self.budget().within(self.place(), state.0, text as u64),
        }
    }

    fn only_the_end(&self, state: State, budget: usize) -> Mask {
        let mut mask = Mask::empty(self.vocabulary().len());
        if budget > 0 && self.is_accepting(state) {
            mask.insert_all(self.vocabulary().eos());
        }
        mask
    }

    fn budget(&self) -> &Budget {
        self.inner
            .budget
            .get_or_init(|| Budget::new(self.place(), self.inner.shares.budget))
    }

    fn place(&self) -> Place<'_> {
        Place {
            machine: &self.inner.machine,
            tables: &self.inner.tables,
            specials: &self.inner.specials,
        }
    }
}
