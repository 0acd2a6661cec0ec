//! A bounded cache of distances. When it is full, all are dropped and recomputed.

use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use crate::pushdown::frame::FrameId;
use crate::pushdown::stack::{ConfigId, END, FINISHED, Stacks};

/// The maximum number of cached distances of each kind.
const MOST_REMEMBERED: usize = 1 << 16;

/// The distances of one kind. They are counted separately, since the table's own count visits each of its
/// shards.
#[derive(Debug)]
pub(crate) struct Remembered<K: Eq + Hash> {
    known: DashMap<K, u64, FxBuildHasher>,
    kept: AtomicUsize,
}

impl<K: Eq + Hash> Default for Remembered<K> {
    fn default() -> Remembered<K> {
        Remembered {
            known: DashMap::default(),
            kept: AtomicUsize::new(0),
        }
    }
}

impl<K: Eq + Hash> Remembered<K> {
    pub(crate) fn get(&self, key: &K) -> Option<u64> {
        self.known.get(key).map(|known| *known)
    }

    pub(crate) fn insert(&self, key: K, length: u64) {
        if self.kept.fetch_add(1, Ordering::Relaxed) >= MOST_REMEMBERED {
            self.known.clear();
            self.kept.store(1, Ordering::Relaxed);
        }
        self.known.insert(key, length);
    }
}

impl Remembered<ConfigId> {
    /// Returns the value of a configuration, computed from its pairs and the values of their callers if it is
    /// not cached. END and FINISHED have the value 0.
    pub(crate) fn or_find(
        &self,
        stacks: &Stacks,
        config: ConfigId,
        find: impl FnMut(&[(FrameId, ConfigId)], &dyn Fn(ConfigId) -> u64) -> u64,
    ) -> u64 {
        let known = |config| match config {
            END | FINISHED => Some(0),
            _ => self.get(&config),
        };
        if let Some(known) = known(config) {
            return known;
        }
        let found = stacks.fold_callers(config, known, find);
        let length = found[&config];
        found
            .into_iter()
            .for_each(|(config, length)| self.insert(config, length));
        length
    }
}
