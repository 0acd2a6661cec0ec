//! A set of visited items. Usually it holds a few, which are compared faster than one is hashed.

use std::hash::Hash;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The maximum number of items in the list.
const LISTED_ITEMS: usize = 8;

/// A set of items, optimised for few.
pub(crate) struct Seen<T> {
    few: SmallVec<[T; LISTED_ITEMS]>,
    /// The items that do not fit in the list.
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
    /// Adds an item; returns `true` if it is new.
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
