//! Masks within a budget: the tokens after which the text can still be completed with the remaining tokens.
//!
//! ```text
//!   remaining tokens   enough after any token        the mask as it is: one comparison (`OvershootBound`)
//!                      too few after some tokens     the mask without those tokens (profile)
//!                      hardly any                    inside the value, or along one completion (nearby)
//! ```
//!
//! The number of tokens of a completion is found in three ways, each used where the previous ones do not
//! decide:
//!
//! 1. *by steps*: the shortest completion in bytes is an upper bound, because each byte of it is a token;
//! 2. *by spelling* (`spell`): one shortest completion, split into the fewest tokens;
//! 3. *by search* (`search`): all completions, token by token, with bounded work. Only for small
//!    vocabularies, and for those without a token for every byte that is needed.
//!
//! **What is exact.** An allowed token can always be completed in time: each way yields a completion, and the
//! first token of that completion leads to a configuration where the same way yields the rest of it, so a
//! mask is never empty if the distance was within the budget. For this, the distance after a token is always
//! the distance of the whole configuration there. If one distance is computed for many tokens at once, they
//! must lead to the same configuration, up to differences that do not matter (`nearby`).
//!
//! If few tokens are allowed, the others cannot be completed in time, provided that the search ran to its
//! end. Otherwise an omitted token may be one of many that leave the current value (`nearby`); with a large
//! vocabulary, one for which only a completion longer in bytes would have been short enough in tokens; or one
//! inside a word that a validator decides (`grammar::Validator`), of whose completions not all are known.
//! This is a property of the constraint "within the budget" as it is defined here, and laws are stated for
//! it.

mod nearby;
mod place;
mod profile;
mod profiles;
mod rest;
mod search;
mod spell;
mod steps;
mod tokens;

use crate::language::NEVER;
use crate::mask::Mask;
use crate::pushdown::{ConfigId, OvershootBound};
use nearby::Nearby;
pub(crate) use place::Place;
use profiles::Profiles;
use tokens::TokenDistances;

/// The limit of a completion that may have any length.
const ANY_LENGTH: u64 = NEVER - 1;

/// The distances of one grammar over one vocabulary, and the masks within them.
#[derive(Debug)]
pub(crate) struct Budget {
    distances: TokenDistances,
    /// The greatest distance to the end that a token can lead to; `None` if some byte is not a token.
    overshoot: Option<OvershootBound>,
    profiles: Profiles,
}

impl Budget {
    /// Computes the distances of a grammar. Distances that are found later take at most `bytes` bytes. O(size
    /// of the automata of its rules and terminals).
    pub(crate) fn new(place: Place<'_>, bytes: usize) -> Budget {
        let distances = TokenDistances::new(place, bytes);
        let overshoot = || {
            OvershootBound::new(
                place.machine.stacks(),
                distances.achievable(),
                place.tables.facts(),
            )
        };
        Budget {
            overshoot: distances.steps.writes_all.then(overshoot),
            distances,
            profiles: Profiles::new(bytes / 2),
        }
    }

    /// Returns the fewest tokens that complete the text, not counting the end token; `None` if no completion
    /// was found.
    pub(crate) fn tokens(&self, place: Place<'_>, config: ConfigId) -> Option<u64> {
        self.distances.tokens(place, config)
    }

    /// Returns `true` if every text can be written, because each byte is a token.
    pub(crate) fn writes_all(&self) -> bool {
        self.distances.steps.writes_all
    }

    /// Returns `true` if the text can be completed with at most `limit` tokens, not counting the end token.
    pub(crate) fn within(&self, place: Place<'_>, config: ConfigId, limit: u64) -> bool {
        self.distances.within(place, config, limit)
    }

    /// Returns the mask of a configuration without the tokens, except end tokens, after which the text cannot
    /// be completed with `limit` more; `None` if all of them can stay.
    pub(crate) fn narrowed(
        &self,
        place: Place<'_>,
        config: ConfigId,
        mask: &Mask,
        limit: u64,
    ) -> Option<Mask> {
        if self.is_ample(place, config, limit) {
            return None;
        }
        let distances = &self.distances;
        let near = || Some(Nearby::new(distances, place, config, mask, limit).mask());
        if distances.achievable().of(place.machine.stacks(), config) > limit {
            return near();
        }
        let profile = self.profiles.of(distances.achievable(), place, config);
        if profile.most <= limit {
            return None;
        }
        if profile.base > limit {
            return near();
        }
        let mut narrowed = None;
        for &(length, token) in &profile.far {
            if length > limit && mask.contains(token) && !distances.allows(place, config, token, limit) {
                narrowed.get_or_insert_with(|| mask.clone()).remove_all(&[token]);
            }
        }
        narrowed
    }

    /// Returns `true` if a completion is known that consists of tokens.
    pub(crate) fn is_spelled(&self, place: Place<'_>, config: ConfigId) -> bool {
        self.distances.within(place, config, ANY_LENGTH)
    }

    /// Returns the mask of a configuration without the tokens after which no completion is known that
    /// consists of tokens; `None` if all of them can stay.
    pub(crate) fn spelled(&self, place: Place<'_>, config: ConfigId, mask: &Mask) -> Option<Mask> {
        let (stacks, distances) = (place.machine.stacks(), &self.distances);
        let may_end = stacks.closure(config).accepting;
        let is_end = |token: u32| may_end && place.vocabulary().is_eos(token);
        let is_dead = |&token: &u32| !is_end(token) && !distances.allows(place, config, token, ANY_LENGTH);
        let is_near = distances.achievable().of(stacks, config) <= ANY_LENGTH;
        let profile = is_near.then(|| self.profiles.of(distances.achievable(), place, config));
        let dead: Vec<u32> = match profile.filter(|profile| profile.base <= ANY_LENGTH) {
            Some(profile) => {
                let far = profile.far.iter().filter(|(length, _)| *length > ANY_LENGTH);
                let far = far.map(|&(_, token)| token).filter(|&token| mask.contains(token));
                far.filter(is_dead).collect()
            }
            None => mask.iter().filter(is_dead).collect(),
        };
        (!dead.is_empty()).then(|| {
            let mut spelled = mask.clone();
            spelled.remove_all(&dead);
            spelled
        })
    }

    /// Returns the tokens of the mask along one completion after which the text can be completed with `limit`
    /// more, and its end tokens. If no completion is known that fits, the result has no text tokens.
    pub(crate) fn closing(&self, place: Place<'_>, config: ConfigId, mask: &Mask, limit: u64) -> Mask {
        Nearby::new(&self.distances, place, config, mask, limit).along()
    }

    /// Returns `true` if no token can exceed the limit, judging without looking at tokens.
    fn is_ample(&self, place: Place<'_>, config: ConfigId, limit: u64) -> bool {
        let (stacks, shortest) = (place.machine.stacks(), self.distances.achievable());
        let overshoot = self.overshoot.as_ref();
        overshoot.is_some_and(|overshoot| overshoot.of(stacks, shortest, config) <= limit)
    }

    /// Returns about how many bytes the distances and profiles found so far take.
    pub(crate) fn bytes(&self) -> usize {
        self.distances.bytes() + self.profiles.bytes()
    }
}
