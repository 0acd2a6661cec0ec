//! Interns values, so that sets can be compared and stored as one word.

use std::fmt;
use std::hash::Hash;

use super::index::{Index, hash_of};

/// A table that assigns equal values equal numbers. Reads never lock.
pub(crate) struct Interner<T> {
    values: boxcar::Vec<T>,
    known: Index,
}

impl<T: Eq + Hash> Interner<T> {
    pub(crate) fn intern(&self, value: T) -> u32 {
        let hash = hash_of(&value);
        let is = |value: &T, number| self.get(number) == value;
        let known = self.known.find(hash, |number| is(&value, number));
        known.unwrap_or_else(|| {
            let add = |value| self.values.push(value) as u32;
            self.known.find_or_add(hash, value, is, add)
        })
    }

    /// Returns how many values have numbers.
    pub(crate) fn len(&self) -> usize {
        self.values.count()
    }

    pub(crate) fn get(&self, id: u32) -> &T {
        &self.values[id as usize]
    }
}

/// Lists with shared prefixes: one more value costs one node, however long the list is.
pub(crate) struct Chains<T> {
    nodes: Interner<(u32, T)>,
}

/// The empty list.
pub(crate) const NIL: u32 = 0;

impl<T: Copy + Eq + Hash> Chains<T> {
    /// Returns the list with one more value at its end.
    pub(crate) fn push(&self, list: u32, value: T) -> u32 {
        self.nodes.intern((list, value)) + 1
    }

    /// Returns how many nodes all lists have together.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the list without its last value, and that value.
    pub(crate) fn split_last(&self, list: u32) -> Option<(u32, T)> {
        Some(*self.nodes.get(list.checked_sub(1)?))
    }

    /// Returns the values from last to first.
    pub(crate) fn iter(&self, list: u32) -> impl Iterator<Item = T> + '_ {
        let mut at = list;
        std::iter::from_fn(move || {
            let (before, value) = self.split_last(at)?;
            at = before;
            Some(value)
        })
    }

    /// Returns the values from first to last.
    pub(crate) fn to_vec(&self, list: u32) -> Vec<T> {
        let mut values: Vec<T> = self.iter(list).collect();
        values.reverse();
        values
    }
}

impl<T: Eq + Hash> Default for Chains<T> {
    fn default() -> Self {
        Chains {
            nodes: Interner::default(),
        }
    }
}

impl<T: Eq + Hash> fmt::Debug for Chains<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chains: {:?}", self.nodes)
    }
}

impl<T: Eq + Hash> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            values: boxcar::Vec::new(),
            known: Index::default(),
        }
    }
}

impl<T: Eq + Hash> fmt::Debug for Interner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interner of {} values", self.len())
    }
}
