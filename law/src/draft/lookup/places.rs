//! An index of the places of a text by the few tokens before each: chains from the latest place to earlier
//! ones.
//!
//! ```text
//!   text      a b c a b d a b            key "a b" ─► latest place 5 ─► earlier place 2 ─► none
//!   place     0 1 2 3 4 5 6 7            (a place is known once its token is)
//! ```
//!
//! The latest place of a key is the head of its chain, so a rewind removes places in reverse order, and each
//! restores the place before it as the head of its key.

use super::super::Text;
use foldhash::{HashMap, HashMapExt};
use std::ops::RangeInclusive;

/// The most tokens of a key.
pub(super) const KEY: usize = 4;

/// The places of one text from `begin` on.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The lengths of the keys.
    keys: RangeInclusive<usize>,
    begin: usize,
    /// The latest place of each key of each length.
    heads: Vec<HashMap<[u32; KEY], u32>>,
    /// For each place and each length: one more than the previous place with the same key; 0 if there is
    /// none.
    earlier: Vec<u32>,
}

/// Returns the tokens as a key; different tokens of one length have different keys.
fn key(tokens: impl Iterator<Item = u32>) -> [u32; KEY] {
    let mut key = [0; KEY];
    key.iter_mut().zip(tokens).for_each(|(key, token)| *key = token);
    key
}

impl Places {
    /// Creates an index without places; `begin` will be the first. Keys have these lengths, at most [`KEY`].
    pub(super) fn new(begin: usize, keys: RangeInclusive<usize>) -> Self {
        Places {
            heads: keys.clone().map(|_| HashMap::new()).collect(),
            keys,
            begin,
            earlier: Vec::new(),
        }
    }

    pub(super) fn begin(&self) -> usize {
        self.begin
    }

    pub(super) fn len(&self) -> usize {
        self.earlier.len() / self.heads.len()
    }

    /// Returns the place after the last one.
    pub(super) fn end(&self) -> usize {
        self.begin + self.len()
    }

    /// Adds the places up to the end of the text.
    pub(super) fn grow(&mut self, text: Text<'_>) {
        // Places are numbered by 32 bits, and one number means none.
        for place in self.end()..text.len().min(u32::MAX as usize - 1) {
            for (length, heads) in self.keys.clone().zip(&mut self.heads) {
                let earlier = place.checked_sub(length).and_then(|from| {
                    let key = key((from..place).map(|place| text.at(place)));
                    heads.insert(key, place as u32)
                });
                self.earlier.push(earlier.map_or(0, |earlier| earlier + 1));
            }
        }
    }

    /// Removes the places from `to` on. `text` must still be the text that was read.
    pub(super) fn rewind(&mut self, text: Text<'_>, to: usize) {
        for place in (to.max(self.begin)..self.end()).rev() {
            let earlier = self.earlier.split_off((place - self.begin) * self.heads.len());
            for ((length, heads), earlier) in self.keys.clone().zip(&mut self.heads).zip(earlier) {
                let Some(from) = place.checked_sub(length) else {
                    continue;
                };
                let key = key((from..place).map(|place| text.at(place)));
                match earlier.checked_sub(1) {
                    Some(earlier) => heads.insert(key, earlier),
                    None => heads.remove(&key),
                };
            }
        }
    }

    /// Returns the places that follow these tokens, the latest first. There must be as many tokens as a key
    /// may have.
    pub(super) fn behind<'a>(&'a self, tokens: &[u32]) -> impl Iterator<Item = usize> + use<'a> {
        let level = tokens.len() - self.keys.start();
        let head = self.heads[level].get(&key(tokens.iter().copied()));
        let earlier = move |&place: &usize| {
            let earlier = self.earlier[(place - self.begin) * self.heads.len() + level];
            Some(earlier.checked_sub(1)? as usize)
        };
        std::iter::successors(head.map(|&place| place as usize), earlier)
    }
}
