//! A cache shared by owners: bounded by weight, and evicts entries of the owner with the most weight first.
//!
//! ```text
//!   insert ─► too heavy? ─► the least recently used entry of the heaviest owner goes; again
//! ```
//!
//! So an owner whose entries weigh no more than the bound divided by the number of owners never loses one,
//! whatever the others insert: the heaviest owner weighs more than that. If all entries have the same owner,
//! or none, this is an LRU cache.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};

use lexiform_engine::Owner;

/// A map from keys to entries, each charged to an owner.
pub struct Cache<K, V> {
    bound: u64,
    entries: RwLock<Entries<K, V>>,
    /// The number of uses so far, which serves as a clock.
    uses: AtomicU64,
    evicted: AtomicU64,
}

struct Entries<K, V> {
    by_key: HashMap<K, CacheEntry<V>>,
    /// The total weight of the entries of each owner.
    charged: HashMap<Owner, u64>,
    weight: u64,
}

struct CacheEntry<V> {
    value: V,
    owner: Owner,
    weight: u64,
    used: AtomicU64,
}

impl<K: Clone + Eq + Hash, V: Clone> Cache<K, V> {
    /// Creates an empty cache that holds this much weight.
    pub fn new(bound: u64) -> Self {
        Self {
            bound,
            entries: RwLock::new(Entries {
                by_key: HashMap::new(),
                charged: HashMap::new(),
                weight: 0,
            }),
            uses: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        }
    }

    /// Returns the value of this key and marks it as used.
    pub fn get(&self, key: &K) -> Option<V> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.by_key.get(key)?;
        entry.used.store(self.tick(), Relaxed);
        Some(entry.value.clone())
    }

    /// Returns the key, value and owner of all entries whose value satisfies `is`. O(entries).
    pub fn matching(&self, is: impl Fn(&V) -> bool) -> Vec<(K, V, Owner)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let matching = entries.by_key.iter().filter(|(_, entry)| is(&entry.value));
        let matching = matching.map(|(key, entry)| (key.clone(), entry.value.clone(), entry.owner.clone()));
        matching.collect()
    }

    /// Inserts a value of this weight. An entry that replaces another stays charged to the first owner.
    pub fn insert(&self, key: K, value: V, owner: Owner, weight: u64) {
        let mut entry = CacheEntry {
            value,
            owner,
            weight,
            used: AtomicU64::new(self.tick()),
        };
        // Evicted values are dropped after the lock is released: grammars are large.
        let mut gone = Vec::new();
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = entries.take(&key) {
            entry.owner.clone_from(&before.owner);
            gone.push(before);
        }
        if weight > self.bound {
            return;
        }
        *entries.charged.entry(entry.owner.clone()).or_default() += weight;
        entries.weight += weight;
        entries.by_key.insert(key, entry);
        while entries.weight > self.bound {
            let Some(entry) = entries.next_victim().and_then(|key| entries.take(&key)) else {
                break;
            };
            gone.push(entry);
            self.evicted.fetch_add(1, Relaxed);
        }
        drop(entries);
    }

    /// Removes the entries whose key satisfies `is`. O(entries).
    pub fn remove(&self, is: impl Fn(&K) -> bool) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<K> = entries.by_key.keys().filter(|key| is(key)).cloned().collect();
        let gone: Vec<_> = keys.iter().filter_map(|key| entries.take(key)).collect();
        // The values are dropped after the lock is released.
        drop(entries);
        drop(gone);
    }

    /// Returns the weight of all entries, and their number.
    pub fn totals(&self) -> (u64, u64) {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        (entries.weight, entries.by_key.len() as u64)
    }

    /// Returns the weight of the entries of one owner.
    pub fn charged(&self, owner: &Owner) -> u64 {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.charged.get(owner).copied().unwrap_or_default()
    }

    /// Returns how many entries were evicted so far.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    fn tick(&self) -> u64 {
        self.uses.fetch_add(1, Relaxed)
    }
}

impl<K: Clone + Eq + Hash, V> Entries<K, V> {
    fn take(&mut self, key: &K) -> Option<CacheEntry<V>> {
        let entry = self.by_key.remove(key)?;
        self.weight -= entry.weight;
        if let Some(charged) = self.charged.get_mut(&entry.owner) {
            *charged -= entry.weight;
            if *charged == 0 {
                self.charged.remove(&entry.owner);
            }
        }
        Some(entry)
    }

    /// Returns the key of the entry to evict next. O(entries): there are some thousands at most, and an entry
    /// is inserted after a compilation, which takes much longer.
    fn next_victim(&self) -> Option<K> {
        let (heaviest, _) = self.charged.iter().max_by_key(|(_, weight)| **weight)?;
        let theirs = self.by_key.iter().filter(|(_, entry)| entry.owner == *heaviest);
        let oldest = theirs.min_by_key(|(_, entry)| entry.used.load(Relaxed));
        oldest.map(|(key, _)| key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(key: &str) -> Owner {
        Some(key.into())
    }

    fn kept(cache: &Cache<u32, u32>, names: std::ops::Range<u32>) -> Vec<u32> {
        let entries = cache.entries.read().expect("no panic");
        names.filter(|key| entries.by_key.contains_key(key)).collect()
    }

    #[test]
    fn who_brings_the_most_loses_first_and_the_longest_unused_of_theirs() {
        let cache = Cache::new(90);
        for key in 0..3 {
            cache.insert(key, 0, owner("few"), 10);
        }
        for key in 100..200 {
            cache.insert(key, 0, owner("many"), 10);
            cache.get(&100);
        }
        assert_eq!(kept(&cache, 0..3), [0, 1, 2], "nobody pushes out who has less");
        assert_eq!(kept(&cache, 100..200), [100, 195, 196, 197, 198, 199]);
        assert_eq!((cache.totals(), cache.evicted()), ((90, 9), 94));
        // A third owner without entries gets a share, and not at the cost of the owner with little.
        for key in 300..303 {
            cache.insert(key, 0, None, 10);
        }
        assert_eq!((kept(&cache, 0..3).len(), kept(&cache, 300..303).len()), (3, 3));
        assert_eq!(kept(&cache, 100..200).len(), 3);
    }

    #[test]
    fn one_owner_may_fill_all_of_it() {
        let cache = Cache::new(100);
        (0..50).for_each(|key| cache.insert(key, key, None, 10));
        assert_eq!(kept(&cache, 0..50), (40..50).collect::<Vec<_>>());
        assert_eq!((cache.get(&39), cache.get(&40)), (None, Some(40)));
    }

    #[test]
    fn a_thing_that_grows_stays_its_first_owner_s() {
        let cache = Cache::new(100);
        cache.insert(1, 1, owner("a"), 10);
        cache.insert(2, 2, owner("b"), 10);
        cache.insert(1, 3, owner("b"), 70);
        assert_eq!((cache.get(&1), cache.totals()), (Some(3), (80, 2)));
        cache.insert(3, 3, owner("b"), 30);
        assert_eq!(kept(&cache, 1..4), [2, 3], "the growth is charged to a");
        cache.insert(4, 4, owner("b"), 101);
        assert_eq!(
            kept(&cache, 1..5),
            [2, 3],
            "what is heavier than all there may be is not kept"
        );
        assert_eq!(cache.totals(), (40, 2));
    }
}
