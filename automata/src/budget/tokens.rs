//! Distances to the end in tokens, by steps, by spelling or by search.

use super::place::Place;
use super::search::Searches;
use super::spell::{Measured, NUMBER_BYTES, Spelling};
use super::steps::Steps;
use crate::language::NEVER;
use crate::pushdown::{ConfigId, Distances};
use crate::vocab::TokenKind;

/// The distances of one grammar over one vocabulary, in tokens.
#[derive(Debug)]
pub(super) struct TokenDistances {
    pub(super) steps: Steps,
    spelling: Spelling,
    searches: Searches,
}

impl TokenDistances {
    /// Computes the distances of a grammar, with caches of at most half of `bytes`. O(size of the automata of
    /// the grammar).
    pub(super) fn new(place: Place<'_>, bytes: usize) -> TokenDistances {
        let most = bytes / 4 / NUMBER_BYTES;
        TokenDistances {
            steps: Steps::new(place),
            spelling: Spelling::new(most),
            searches: Searches::new(most),
        }
    }

    /// Returns about how many bytes the caches take.
    pub(super) fn bytes(&self) -> usize {
        self.spelling.bytes() + self.searches.bytes()
    }

    /// Returns the upper bounds on the distances in steps.
    pub(super) fn achievable(&self) -> &Distances {
        self.steps.achievable()
    }

    /// Returns the fewest tokens that complete the text, not counting the end token; `None` if no completion
    /// was found.
    pub(super) fn tokens(&self, place: Place<'_>, config: ConfigId) -> Option<u64> {
        let stacks = place.machine.stacks();
        let steps = self.achievable().of(stacks, config);
        let best = steps.min(self.spelled(place, config));
        let least = self.steps.at_least.of(stacks, config).div_ceil(self.steps.stride);
        if best == least || !self.is_searched(place, steps) {
            return (best != NEVER).then_some(best);
        }
        let found = self.search(place, config, best.saturating_sub(1));
        let best = found.map_or(best, |found| found.min(best));
        (best != NEVER).then_some(best)
    }

    /// Returns `true` if the text can be completed with at most `limit` tokens, not counting the end token.
    pub(super) fn within(&self, place: Place<'_>, config: ConfigId, limit: u64) -> bool {
        let stacks = place.machine.stacks();
        let steps = self.achievable().of(stacks, config);
        if steps <= limit {
            return true;
        }
        // In languages with large counts, an unknown distance does not mean that there is no completion.
        let least = self.steps.at_least.of(stacks, config);
        if least != NEVER && least.div_ceil(self.steps.stride) > limit {
            return false;
        }
        let found = || self.search(place, config, limit);
        self.spelled(place, config) <= limit
            || self.is_searched(place, steps) && found().is_some_and(|found| found <= limit)
    }

    /// Returns `true` if the text can be completed within the limit after this token, which the mask allows.
    pub(super) fn allows(&self, place: Place<'_>, config: ConfigId, token: u32, limit: u64) -> bool {
        let stacks = place.machine.stacks();
        let mut named = place.specials.of(token);
        let mut named = std::iter::from_fn(|| Some(stacks.step_special(config, named.next()?))).flatten();
        if named.any(|next| self.within(place, next, limit)) {
            return true;
        }
        if place.vocabulary().kind(token) != TokenKind::Text {
            return false;
        }
        let mut bytes = place.vocabulary().bytes(token).iter();
        let next = bytes.try_fold(config, |config, &byte| stacks.step(config, byte));
        next.is_some_and(|next| self.within(place, next, limit))
    }

    /// Returns the beginning of a completion of at most `limit` tokens, at least its first token; empty if
    /// none is known.
    pub(super) fn completion(&self, place: Place<'_>, config: ConfigId, limit: u64) -> Vec<u8> {
        let steps = self.achievable().of(place.machine.stacks(), config);
        let is_spelled = || steps <= limit || self.spelled(place, config) <= limit;
        if steps != NEVER && (!place.is_small() || is_spelled()) {
            let most = place.vocabulary().longest();
            return self.spelling.bytes_of(self.measured(place), config, most);
        }
        let first = self.searches.first((place, &self.steps), config, limit);
        first.map_or(Vec::new(), |token| place.vocabulary().bytes(token).to_vec())
    }

    /// Returns the number of tokens of the spelled completion; [`NEVER`] if it is too long or cannot be
    /// written.
    fn spelled(&self, place: Place<'_>, config: ConfigId) -> u64 {
        self.spelling.tokens(self.measured(place), config)
    }

    fn measured<'a>(&'a self, place: Place<'a>) -> Measured<'a> {
        (place, place.machine.stacks(), self.achievable())
    }

    /// Returns `true` if completions are searched from a configuration with this distance.
    fn is_searched(&self, place: Place<'_>, steps: u64) -> bool {
        steps == NEVER || place.is_small()
    }

    fn search(&self, place: Place<'_>, config: ConfigId, limit: u64) -> Option<u64> {
        self.searches.tokens((place, &self.steps), config, limit)
    }
}
