//! A list without duplicates, in the order of insertion. Tens of thousands of names and schemas may be known
//! about an object, and each is looked up whenever a choice is made.

use std::borrow::Borrow;
use std::hash::Hash;

use foldhash::HashSet;

/// The length up to which a list is searched by comparison, which is faster than hashing the item.
const SEARCHED_LENGTH: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct Listed<T> {
    list: Vec<T>,
    /// All items, once there are more than a few.
    hashed: HashSet<T>,
}

impl<T> Default for Listed<T> {
    fn default() -> Listed<T> {
        Listed {
            list: Vec::new(),
            hashed: HashSet::default(),
        }
    }
}

impl<T: Clone + Eq + Hash> Listed<T> {
    /// Adds an item, unless it is in the list already.
    pub(crate) fn add(&mut self, one: T) {
        if self.contains(&one) {
            return;
        }
        if self.list.len() == SEARCHED_LENGTH {
            self.hashed.extend(self.list.iter().cloned());
        }
        if self.list.len() >= SEARCHED_LENGTH {
            self.hashed.insert(one.clone());
        }
        self.list.push(one);
    }

    pub(crate) fn contains<Q: ?Sized + Eq + Hash>(&self, one: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        match self.list.len() {
            ..=SEARCHED_LENGTH => self.list.iter().any(|known| known.borrow() == one),
            _ => self.hashed.contains(one),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.list.iter()
    }
}

/// Adds an item to a list, unless it is in the list already.
pub(crate) fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn all_are_found_however_many_there_are() {
        let name = |at: usize| Rc::<str>::from(format!("k{at}"));
        let mut names = Listed::default();
        for at in 0..3 * SEARCHED_LENGTH {
            assert!(!names.contains(&*name(at)));
            names.add(name(at));
            names.add(name(at / 2));
            assert_eq!(names.len(), at + 1);
            assert!((0..=at).all(|at| names.contains(&*name(at))));
        }
        let listed: Vec<Rc<str>> = names.iter().cloned().collect();
        assert_eq!(listed, (0..3 * SEARCHED_LENGTH).map(name).collect::<Vec<_>>());
    }
}
