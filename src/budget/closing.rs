//! One way to the end that fits into a budget, where all of them are too many to be found.
//!
//! Which tokens can still be completed in time is a question for each token, and near the end of an object with many
//! open alternatives the answers cost more than a mask may. So instead of refusing the mask, what is left of it then are
//! the tokens along one completion that fits: fewer than could stay, and each of them leads to where one fits again.

use super::{Budget, Place, is_small};
use crate::language::{NEVER, plus};
use crate::mask::Mask;
use crate::pushdown::ConfigId;

impl Budget {
    /// The tokens of the mask along one completion, end tokens aside, after which the text can be completed with
    /// `limit` more. Empty where no completion is known that fits.
    pub(crate) fn closing(&self, place: Place<'_>, config: ConfigId, mask: &Mask, limit: u64) -> Mask {
        let vocabulary = place.vocabulary();
        let mut closing = Mask::empty(vocabulary.len());
        closing.insert_all(vocabulary.eos());
        closing.intersect(mask);
        let way = self.way(place, config, plus(limit, 1));
        let along = vocabulary.trie().prefixes(&way).flat_map(|(_, tokens)| tokens);
        for &token in along.chain(place.specials) {
            if mask.contains(token) && self.allows(place, config, token, limit) {
                closing.insert(token);
            }
        }
        closing
    }

    /// The text of a completion of at most so many tokens, or how it begins, if there is one.
    pub(super) fn way(&self, place: Place<'_>, config: ConfigId, limit: u64) -> Vec<u8> {
        let steps = self.achievable().of(place.machine.stacks(), config);
        let is_spelled = || steps <= limit || self.spelled(place, config) <= limit;
        if steps != NEVER && (!is_small(place) || is_spelled()) {
            return self.spelled_bytes(place, config);
        }
        let first = self.first_found(place, config, limit);
        first.map_or(Vec::new(), |token| place.vocabulary().bytes(token).to_vec())
    }
}
