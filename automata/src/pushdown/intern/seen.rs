//! A set of what was met on the way. Mostly that is a few things, which are compared sooner than one is
//! hashed.

use std::hash::Hash;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The most things that are kept in a list.
const LISTED_ITEMS: usize = 8;

/// A set of things, of which most hold a few.
pub(crate) struct Seen<T> {
    few: SmallVec<[T; LISTED_ITEMS]>,
    /// All others.
    more: FxHashSet<T>,
}

impl<T> Default for Seen<T> {
    fn default() -> Seen<T> {
        Seen {
            few: SmallVec::new(),
            more: FxHashSet::default(),
        }
    }
}

impl<T: Eq + Hash> Seen<T> {
    /// Whether it is met for the first time; from now on it was met.
    pub(crate) fn insert(&mut self, one: T) -> bool {
        if self.few.contains(&one) {
            return false;
        }
        if self.few.len() == LISTED_ITEMS {
            return self.more.insert(one);
        }
        self.few.push(one);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_new_once_however_many_there_are() {
        let mut seen = Seen::default();
        for thing in 0..3 * LISTED_ITEMS {
            assert!(seen.insert(thing));
            assert!((0..=thing).all(|known| !seen.insert(known)));
        }
    }
}
