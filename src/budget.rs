//! Ending in time: which tokens leave a text that can still be completed within so many more.
//!
//! ```text
//!   remaining tokens   far more than any token can make necessary    the mask as it is: one comparison (`OvershootBound`)
//!                      fewer than some tokens would make necessary   the mask without those tokens (profile)
//!                      hardly any                                    every token by its own distance (nearby)
//! ```
//!
//! How many tokens a completion takes is found in three ways, each used where those before cannot tell:
//!
//! 1. *by steps*: the shortest completion in bytes is a bound, because each byte of it is a token;
//! 2. *by spelling* (`spell`): one shortest completion, cut into the fewest tokens;
//! 3. *by search* (`search`): all completions, token by token. Only for small vocabularies, and for those without a
//!    token for every byte that is needed; with bounded work.
//!
//! **What is exact.** A token that is allowed can always be completed in time: each way names a completion, and its
//! first token leads to where the same way names the rest of it, so that a mask is never empty where the distance was
//! within the budget. For that, the distance after a token is always that of the whole configuration there; where it is
//! found for many tokens at once, they must lead to the same one, but for what makes no difference (`nearby`).
//!
//! A token that is left out cannot be completed in time as far as 3 was tried to its end. Otherwise it may be one of many whose
//! futures have nothing in common, as in a key after which more keys must follow, or with a large vocabulary one for which
//! only a completion longer in bytes would have been short enough in tokens. So may one inside a word that a judge
//! tells (`grammar::Judge`), of whose completions not all are known. That is a property of the constraint "within the
//! budget" as it is defined here, and laws are stated for it.

mod closing;
mod nearby;
mod profile;
mod search;
mod spell;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use crate::language::{ByteSet, Cursor, NEVER, Terminal};
use crate::mask::{EndStates, Mask, Tables};
use crate::pushdown::{ConfigId, Distances, Machine, OvershootBound};
use crate::vocab::Vocabulary;
use profile::Profile;

/// Completions are searched among all texts where the trie of the vocabulary has no more nodes than this.
const SMALL_TRIE: usize = 512;

/// The distances of one grammar over one vocabulary.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Never too many steps.
    at_least: Distances,
    /// Never too few, over bytes that are tokens; `None` where it is the same.
    achievable: Option<Distances>,
    /// Whether a byte is no token, or not all completions of some words are known.
    gaps: bool,
    /// The most steps that one token can make.
    stride: u64,
    /// How far from the end tokens lead at most; `None` where a byte is no token.
    overshoot: Option<OvershootBound>,
    profiles: DashMap<ConfigId, Arc<Profile>, FxBuildHasher>,
    /// By the number of the terminal and the state in it.
    end_states: DashMap<(u64, u32), Arc<EndStates>, FxBuildHasher>,
    /// What profiles and end states take.
    profile_bytes: AtomicUsize,
    /// The memory for them in bytes; beyond it all are dropped and found again.
    most_profile_bytes: usize,
    /// How many searches are remembered at most, for speed alone.
    most_searches: usize,
    spelling: spell::Spelling,
    searched: DashMap<ConfigId, search::Found, FxBuildHasher>,
}

/// What all questions are about.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) tables: &'a Tables,
    /// The tokens of the special tokens that the grammar names.
    pub(crate) specials: &'a [u32],
}

impl<'a> Place<'a> {
    fn vocabulary(&self) -> &'a Vocabulary {
        self.tables.vocabulary()
    }
}

impl Budget {
    /// The distances of a grammar, of which those that are found later take at most so many bytes. O(size of the automata of
    /// its rules and terminals).
    pub(crate) fn new(place: Place<'_>, bytes: usize) -> Budget {
        let vocabulary = place.vocabulary();
        let (mut all, mut usable) = (ByteSet::default(), ByteSet::default());
        all.insert_range(0, u8::MAX);
        for byte in (0..=u8::MAX).filter(|&byte| vocabulary.token_of_byte(byte).is_some()) {
            usable.insert_range(byte, byte);
        }
        let stacks = place.machine.stacks();
        // Where the shortest completion is not known, one distance cannot serve as both; nor where keys differ, since what
        // is known to be achievable is not always the shortest.
        let gaps = usable != all || stacks.has_judges();
        let complete = !gaps && !stacks.counts_keys();
        let at_least = Distances::new(stacks, all, complete);
        let achievable = (!complete).then(|| Distances::new(stacks, usable, true));
        let known = achievable.as_ref().unwrap_or(&at_least);
        let overshoot = || OvershootBound::new(stacks, known, place.tables.facts());
        Budget {
            overshoot: (usable == all).then(overshoot),
            at_least,
            achievable,
            gaps,
            stride: vocabulary.longest().max(1) as u64,
            profiles: DashMap::default(),
            end_states: DashMap::default(),
            profile_bytes: AtomicUsize::new(0),
            most_profile_bytes: bytes / 2,
            most_searches: bytes / 4 / NUMBER_BYTES,
            spelling: spell::Spelling::new(bytes / 4 / NUMBER_BYTES),
            searched: DashMap::default(),
        }
    }

    fn achievable(&self) -> &Distances {
        self.achievable.as_ref().unwrap_or(&self.at_least)
    }

    /// The fewest tokens that complete the text, the end of the sequence not counted; `None` where none were found.
    pub(crate) fn tokens(&self, place: Place<'_>, config: ConfigId) -> Option<u64> {
        let stacks = place.machine.stacks();
        let steps = self.achievable().of(stacks, config);
        let best = steps.min(self.spelled(place, config));
        let least = self.at_least.of(stacks, config).div_ceil(self.stride);
        if best == least || !self.searches(place, steps) {
            return (best != NEVER).then_some(best);
        }
        let best = self
            .search(place, config, best.saturating_sub(1))
            .map_or(best, |found| found.min(best));
        (best != NEVER).then_some(best)
    }

    /// Whether every text can be written, because each byte is a token.
    pub(crate) fn writes_all(&self, place: Place<'_>) -> bool {
        (0..=u8::MAX).all(|byte| place.vocabulary().token_of_byte(byte).is_some())
    }

    /// Whether the text can be completed with so many tokens, the end of the sequence not counted.
    pub(crate) fn within(&self, place: Place<'_>, config: ConfigId, limit: u64) -> bool {
        let stacks = place.machine.stacks();
        let steps = self.achievable().of(stacks, config);
        if steps <= limit {
            return true;
        }
        // In languages with great counts no known distance is not that there is none.
        let least = self.at_least.of(stacks, config);
        if least != NEVER && least.div_ceil(self.stride) > limit {
            return false;
        }
        self.spelled(place, config) <= limit
            || self.searches(place, steps)
                && self
                    .search(place, config, limit)
                    .is_some_and(|found| found <= limit)
    }

    fn searches(&self, place: Place<'_>, steps: u64) -> bool {
        steps == NEVER || is_small(place)
    }

    /// The mask of a configuration without the tokens, end tokens aside, after which the text cannot be completed with
    /// `limit` more; `None` if all of them can stay.
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
        let profile = self.profile(place, config);
        if profile.most <= limit {
            return None;
        }
        if profile.base > limit {
            return Some(nearby::mask(self, place, config, mask, limit));
        }
        let mut narrowed = None;
        for &(length, token) in &profile.far {
            if length > limit && mask.contains(token) && !self.allows(place, config, token, limit) {
                narrowed.get_or_insert_with(|| mask.clone()).remove_all(&[token]);
            }
        }
        narrowed
    }

    /// Whether no token can matter, as far as can be said without looking at tokens.
    fn is_ample(&self, place: Place<'_>, config: ConfigId, limit: u64) -> bool {
        let (stacks, shortest) = (place.machine.stacks(), self.achievable());
        let overshoot = self.overshoot.as_ref();
        overshoot.is_some_and(|overshoot| overshoot.of(stacks, shortest, config) <= limit)
    }

    /// Whether the text can be completed within the limit after this token, which the mask allows.
    fn allows(&self, place: Place<'_>, config: ConfigId, token: u32, limit: u64) -> bool {
        let stacks = place.machine.stacks();
        let special = place.specials.iter().position(|&special| special == token);
        let next = match special {
            Some(special) => stacks.step_special(config, special as u32),
            None => {
                let mut bytes = place.vocabulary().bytes(token).iter();
                bytes.try_fold(config, |config, &byte| stacks.step(config, byte))
            }
        };
        next.is_some_and(|next| self.within(place, next, limit))
    }

    fn profile(&self, place: Place<'_>, config: ConfigId) -> Arc<Profile> {
        if let Some(known) = self.profiles.get(&config) {
            return known.clone();
        }
        let profile = Arc::new(Profile::new(self.achievable(), place, config));
        self.grow(profile.bytes());
        self.profiles.insert(config, profile.clone());
        profile
    }

    /// Where the tokens lead that stay within a language; kept where nothing is counted, since a text comes by the same places then.
    fn end_states(&self, place: Place<'_>, terminal: &Terminal, cursor: Cursor) -> Arc<EndStates> {
        let find = || Arc::new(EndStates::new(terminal, cursor, place.vocabulary()));
        if terminal.is_counted() {
            return find();
        }
        let key = (terminal.number(), cursor.state);
        if let Some(known) = self.end_states.get(&key) {
            return known.clone();
        }
        let found = find();
        self.grow(found.bytes());
        self.end_states.insert(key, found.clone());
        found
    }

    fn grow(&self, bytes: usize) {
        if self.profile_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.most_profile_bytes {
            self.profiles.clear();
            self.end_states.clear();
            self.profile_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// About how much memory is taken by what was found so far, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let searched = self.searched.len() * NUMBER_BYTES;
        self.profile_bytes.load(Ordering::Relaxed) + self.spelling.bytes() + searched
    }
}

/// Whether the vocabulary is so small that completions are searched among all texts.
fn is_small(place: Place<'_>) -> bool {
    place.vocabulary().trie().nodes().len() <= SMALL_TRIE
}

/// A number with its key in the table that finds it.
const NUMBER_BYTES: usize = 48;
