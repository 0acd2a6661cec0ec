//! Numbers for values, so that sets can be compared and stored as one word.

use std::fmt;
use std::hash::Hash;

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

/// Numbers for values: equal values have equal numbers. Reads never lock.
pub(super) struct Interner<T> {
    values: boxcar::Vec<T>,
    known: DashMap<T, u32, FxBuildHasher>,
}

impl<T: Clone + Eq + Hash> Interner<T> {
    pub(super) fn intern(&self, value: T) -> u32 {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        *self
            .known
            .entry(value.clone())
            .or_insert_with(|| self.values.push(value) as u32)
    }

    pub(super) fn get(&self, id: u32) -> &T {
        &self.values[id as usize]
    }
}

impl<T: Eq + Hash> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            values: boxcar::Vec::new(),
            known: DashMap::default(),
        }
    }
}

impl<T: Eq + Hash> fmt::Debug for Interner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interner of {} values", self.values.count())
    }
}
