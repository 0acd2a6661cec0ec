//! Masks within a budget: the tokens after which the text can still be completed in the tokens that are left.
//!
//! ```text
//!   remaining tokens   far more than any token can make necessary    the mask as it is: one comparison (`OvershootBound`)
//!                      fewer than some tokens would make necessary   the mask without those tokens (profile)
//!                      hardly any                                    inside the value, or along one completion (nearby)
//! ```
//!
//! How many tokens a completion takes is found in three ways, each used where those before cannot tell:
//!
//! 1. *by steps*: the shortest completion in bytes is a bound, because each byte of it is a token;
//! 2. *by spelling* (`spell`): one shortest completion, cut into the fewest tokens;
//! 3. *by search* (`search`): all completions, token by token. Only for small vocabularies, and for those
//!    without a token for every byte that is needed; with bounded work.
//!
//! **What is exact.** A token that is allowed can always be completed in time: each way names a completion,
//! and its first token leads to where the same way names the rest of it, so that a mask is never empty where
//! the distance was within the budget. For that, the distance after a token is always that of the whole
//! configuration there; where it is found for many tokens at once, they must lead to the same one, but for
//! what makes no difference (`nearby`).
//!
//! Where few tokens are allowed, one that is left out cannot be completed in time, as far as 3 was tried to
//! its end. Otherwise it may be one of many that leave the current value (`nearby`), with a large vocabulary
//! one for which only a completion longer in bytes would have been short enough in tokens, or one inside a
//! word that a judge decides (`grammar::Judge`), of whose completions not all are known. That is a property
//! of the constraint "within the budget" as it is defined here, and laws are stated for it.

mod nearby;
mod place;
mod profile;
mod profiles;
mod search;
mod spell;
mod steps;
mod tokens;

use crate::mask::Mask;
use crate::pushdown::{ConfigId, OvershootBound};
use nearby::Nearby;
pub(crate) use place::Place;
use profiles::Profiles;
use tokens::TokenDistances;

/// The distances of one grammar over one vocabulary, and the masks within them.
#[derive(Debug)]
pub(crate) struct Budget {
    distances: TokenDistances,
    /// How far from the end tokens lead at most; `None` where a byte is no token.
    overshoot: Option<OvershootBound>,
    profiles: Profiles,
}

impl Budget {
    /// The distances of a grammar, of which those that are found later take at most this many bytes. O(size
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

    /// The fewest tokens that complete the text, the end of the sequence not counted; `None` where none were
    /// found.
    pub(crate) fn tokens(&self, place: Place<'_>, config: ConfigId) -> Option<u64> {
        self.distances.tokens(place, config)
    }

    /// Whether every text can be written, because each byte is a token.
    pub(crate) fn writes_all(&self) -> bool {
        self.distances.steps.writes_all
    }

    /// Whether the text can be completed with at most `limit` tokens, the end of the sequence not counted.
    pub(crate) fn within(&self, place: Place<'_>, config: ConfigId, limit: u64) -> bool {
        self.distances.within(place, config, limit)
    }

    /// The mask of a configuration without the tokens, end tokens aside, after which the text cannot be
    /// completed with `limit` more; `None` if all of them can stay.
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

    /// The tokens of the mask along one completion, end tokens aside, after which the text can be completed
    /// with `limit` more. Empty where no completion is known that fits.
    pub(crate) fn closing(&self, place: Place<'_>, config: ConfigId, mask: &Mask, limit: u64) -> Mask {
        Nearby::new(&self.distances, place, config, mask, limit).along()
    }

    /// Whether no token can matter, as far as can be said without looking at tokens.
    fn is_ample(&self, place: Place<'_>, config: ConfigId, limit: u64) -> bool {
        let (stacks, shortest) = (place.machine.stacks(), self.distances.achievable());
        let overshoot = self.overshoot.as_ref();
        overshoot.is_some_and(|overshoot| overshoot.of(stacks, shortest, config) <= limit)
    }

    /// About how much memory is taken by what was found so far, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.distances.bytes() + self.profiles.bytes()
    }
}
