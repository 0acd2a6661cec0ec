//! The mask when hardly any tokens are left: it continues inside the current value, or takes the shortest
//! path to the end.
//!
//! ```text
//!   inside a string        a token that stays in it, if it can still be closed in time; and the way out
//!   few tokens allowed     each by its own distance, exactly
//!   many tokens allowed    those along one completion that fits
//! ```
//!
//! Tokens that stay within a regular language and lead to the same state are judged once, so that a hundred
//! thousand ways to continue inside a string are one query. The others are judged one by one if they are few.
//! If they are many (after a value of an object with many open alternatives, in an open key), only those
//! along one completion are allowed, and each of them leads to a configuration in which a completion fits
//! again.
//!
//! # Tokens that are left out although they would fit
//!
//! Tokens that leave the current value and are neither few nor on the path to the end are left out, although
//! some of them could be completed in time: near the end, no optional property and no further item is begun
//! if that takes a choice among more than [`JUDGED_TOKENS`] tokens. Judging all of them took 30 ms in the
//! 99th percentile of such masks, and 90 ms at most.

use super::place::Place;
use super::profile::{Ahead, Part};
use super::tokens::TokenDistances;
use crate::language::{ByteSet, plus};
use crate::mask::Mask;
use crate::pushdown::{ConfigId, FrameId, View};
use crate::work::spend;

/// The maximum number of tokens of a mask that are judged one by one. In a small vocabulary each may take a
/// search.
const JUDGED_TOKENS: usize = 32;

/// The maximum number of readers that are compared to find out whether two of them read the same token.
const MOST_READERS: usize = 16;

/// Selects the tokens of a mask after which the text can be completed with `limit` more.
pub(super) struct Nearby<'a> {
    distances: &'a TokenDistances,
    place: Place<'a>,
    config: ConfigId,
    mask: &'a Mask,
    limit: u64,
    near: Mask,
}

impl<'a> Nearby<'a> {
    pub(super) fn new(
        distances: &'a TokenDistances,
        place: Place<'a>,
        config: ConfigId,
        mask: &'a Mask,
        limit: u64,
    ) -> Nearby<'a> {
        Nearby {
            distances,
            place,
            config,
            mask,
            limit,
            near: Mask::empty(place.vocabulary().len()),
        }
    }

    /// Returns the tokens that stay in the current value, and of the others each that fits or, if they are
    /// many, those along one completion. The end tokens are as in the mask.
    pub(super) fn mask(mut self) -> Mask {
        self.staying();
        let left: Vec<u32> = self
            .mask
            .without(&self.near)
            .iter()
            .take(JUDGED_TOKENS + 1)
            .collect();
        match left.len() <= JUDGED_TOKENS {
            true => self.each(&left),
            false => self.near.unite(&self.along()),
        }
        let mut near = self.near;
        near.insert_all(self.place.vocabulary().eos());
        near.intersect(self.mask);
        near
    }

    /// Returns the tokens along one completion, and the end tokens. If no completion is known that fits, the
    /// result has no text tokens.
    pub(super) fn along(&self) -> Mask {
        let vocabulary = self.place.vocabulary();
        let mut along = Mask::empty(vocabulary.len());
        along.insert_all(vocabulary.eos());
        along.intersect(self.mask);
        let text = self
            .distances
            .completion(self.place, self.config, plus(self.limit, 1));
        let tokens = vocabulary.trie().prefixes(&text).flat_map(|(_, tokens)| tokens);
        let specials = self.place.specials.first_tokens().map(|(_, token)| token);
        for token in tokens.copied().chain(specials) {
            if self.mask.contains(token) && self.allows(token) {
                along.insert(token);
            }
        }
        along
    }

    /// Adds the tokens that stay within the language of a reader.
    fn staying(&mut self) {
        let stacks = self.place.machine.stacks();
        let readers = &stacks.closure(self.config).readers;
        let mut walk = Ahead::new(self.distances.achievable(), self.place);
        for &reader in readers {
            let part = Part::new(&mut walk, self.place, reader);
            if let Some(part) = part.filter(|part| !part.validated) {
                let alone = !part.overlaps && is_alone(&walk, readers, reader);
                self.stay(reader, &part, alone);
            }
        }
    }

    /// Adds the tokens that stay within the language of a reader, if its own path to the end is short enough
    /// in steps. If no other reader reads them, tokens that lead to the same state are also added if one of
    /// them can be completed in time.
    fn stay(&mut self, (frame, callers): (FrameId, ConfigId), part: &Part<'a>, alone: bool) {
        let stacks = self.place.machine.stacks();
        let below = self.distances.achievable().of(stacks, callers);
        let is_key = matches!(stacks.view(frame), View::Key(..));
        let end_states = self.place.tables.end_states(part.terminal, part.cursor.state);
        let mut judged = 0;
        for (cursor, tokens) in end_states.from(part.terminal, part.cursor) {
            spend(1);
            let own = self.distances.achievable().of_view(stacks, frame, cursor);
            if plus(own, below) <= self.limit {
                tokens.add_to(&mut self.near);
            } else if alone && !is_key && judged < JUDGED_TOKENS {
                let mut here = Mask::empty(self.place.vocabulary().len());
                tokens.add_to(&mut here);
                here.intersect(self.mask);
                judged += 1;
                if here.iter().next().is_some_and(|token| self.allows(token)) {
                    self.near.unite(&here);
                }
            }
        }
    }

    fn each(&mut self, tokens: &[u32]) {
        for &token in tokens {
            if self.allows(token) {
                self.near.insert(token);
            }
        }
    }

    fn allows(&self, token: u32) -> bool {
        self.distances.allows(self.place, self.config, token, self.limit)
    }
}

/// Returns `true` if no other reader reads a byte that this one reads, so that tokens that stay in its
/// language are in no other.
fn is_alone(
    walk: &Ahead<'_>,
    readers: &[(FrameId, ConfigId)],
    (frame, callers): (FrameId, ConfigId),
) -> bool {
    let bytes = |frame, callers| {
        let (heads, mut bytes) = (&walk.lookahead, ByteSet::default());
        heads.add_bytes(
            &heads.reader(frame, callers, 0),
            &mut bytes,
            &mut ByteSet::default(),
        );
        bytes
    };
    let own = bytes(frame, callers);
    let mut others = readers.iter().filter(|other| **other != (frame, callers));
    readers.len() == 1
        || readers.len() <= MOST_READERS
            && others.all(|&(frame, callers)| bytes(frame, callers).common(&own).is_empty())
}
