//! Things kept for many who do not know each other: bounded by weight, and whoever brings the most loses first.
//!
//! ```text
//!   put ─► too heavy? ─► of the owner whose things weigh the most, the one that was unused for the longest goes; again
//! ```
//!
//! So nobody whose things weigh no more than the bound divided by the owners ever loses one, whatever the others bring:
//! the heaviest weighs more than that. Where all things have the same owner, or none, the least recently used goes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};

/// Who is charged for a thing.
pub use lexiform_engine::Owner;

/// Things by their names.
pub struct Shelf<K, V> {
    bound: u64,
    stock: RwLock<Stock<K, V>>,
    /// Counts uses, as a clock.
    uses: AtomicU64,
    evicted: AtomicU64,
}

struct Stock<K, V> {
    things: HashMap<K, Thing<V>>,
    /// What the things of each owner weigh together.
    charged: HashMap<Owner, u64>,
    weight: u64,
}

struct Thing<V> {
    value: V,
    owner: Owner,
    weight: u64,
    used: AtomicU64,
}

impl<K: Clone + Eq + Hash, V: Clone> Shelf<K, V> {
    /// An empty one that holds this much.
    pub fn new(bound: u64) -> Self {
        Self {
            bound,
            stock: RwLock::new(Stock {
                things: HashMap::new(),
                charged: HashMap::new(),
                weight: 0,
            }),
            uses: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        }
    }

    /// The thing of this name.
    pub fn get(&self, name: &K) -> Option<V> {
        let stock = self.stock.read().unwrap_or_else(PoisonError::into_inner);
        let thing = stock.things.get(name)?;
        thing.used.store(self.tick(), Relaxed);
        Some(thing.value.clone())
    }

    /// The things of which this is true, with their names and owners. O(things).
    pub fn those(&self, is: impl Fn(&V) -> bool) -> Vec<(K, V, Owner)> {
        let stock = self.stock.read().unwrap_or_else(PoisonError::into_inner);
        let those = stock.things.iter().filter(|(_, thing)| is(&thing.value));
        let those = those.map(|(name, thing)| (name.clone(), thing.value.clone(), thing.owner.clone()));
        those.collect()
    }

    /// Puts a thing of this weight there. Where there was one of this name, it goes on being its first owner's.
    pub fn put(&self, name: K, value: V, owner: Owner, weight: u64) {
        let mut thing = Thing {
            value,
            owner,
            weight,
            used: AtomicU64::new(self.tick()),
        };
        // What goes is dropped when nobody has to wait for it any more: grammars are large.
        let mut gone = Vec::new();
        let mut stock = self.stock.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = stock.take(&name) {
            thing.owner.clone_from(&before.owner);
            gone.push(before);
        }
        if weight > self.bound {
            return;
        }
        *stock.charged.entry(thing.owner.clone()).or_default() += weight;
        stock.weight += weight;
        stock.things.insert(name, thing);
        while stock.weight > self.bound {
            let Some(thing) = stock.next_to_go().and_then(|name| stock.take(&name)) else {
                break;
            };
            gone.push(thing);
            self.evicted.fetch_add(1, Relaxed);
        }
        drop(stock);
    }

    /// What all things weigh, and how many there are.
    pub fn load(&self) -> (u64, u64) {
        let stock = self.stock.read().unwrap_or_else(PoisonError::into_inner);
        (stock.weight, stock.things.len() as u64)
    }

    /// What the things of one owner weigh.
    pub fn charged(&self, owner: &Owner) -> u64 {
        let stock = self.stock.read().unwrap_or_else(PoisonError::into_inner);
        stock.charged.get(owner).copied().unwrap_or_default()
    }

    /// How many things had to go.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    fn tick(&self) -> u64 {
        self.uses.fetch_add(1, Relaxed)
    }
}

impl<K: Clone + Eq + Hash, V> Stock<K, V> {
    fn take(&mut self, name: &K) -> Option<Thing<V>> {
        let thing = self.things.remove(name)?;
        self.weight -= thing.weight;
        if let Some(charged) = self.charged.get_mut(&thing.owner) {
            *charged -= thing.weight;
            if *charged == 0 {
                self.charged.remove(&thing.owner);
            }
        }
        Some(thing)
    }

    /// Looks at all things. There are some thousands at most, and a thing is only put here when it was made, which takes
    /// much longer.
    fn next_to_go(&self) -> Option<K> {
        let (heaviest, _) = self.charged.iter().max_by_key(|(_, weight)| **weight)?;
        let theirs = self.things.iter().filter(|(_, thing)| thing.owner == *heaviest);
        let oldest = theirs.min_by_key(|(_, thing)| thing.used.load(Relaxed));
        oldest.map(|(name, _)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Owner {
        Some(name.into())
    }

    fn kept(shelf: &Shelf<u32, u32>, names: std::ops::Range<u32>) -> Vec<u32> {
        let stock = shelf.stock.read().expect("no panic");
        names.filter(|name| stock.things.contains_key(name)).collect()
    }

    #[test]
    fn who_brings_the_most_loses_first_and_the_longest_unused_of_theirs() {
        let shelf = Shelf::new(90);
        for name in 0..3 {
            shelf.put(name, 0, owner("few"), 10);
        }
        for name in 100..200 {
            shelf.put(name, 0, owner("many"), 10);
            shelf.get(&100);
        }
        assert_eq!(kept(&shelf, 0..3), [0, 1, 2], "nobody pushes out who has less");
        assert_eq!(kept(&shelf, 100..200), [100, 195, 196, 197, 198, 199]);
        assert_eq!((shelf.load(), shelf.evicted()), ((90, 9), 94));
        // A third, who has none yet, gets a share, and not that of the one who has little.
        for name in 300..303 {
            shelf.put(name, 0, None, 10);
        }
        assert_eq!((kept(&shelf, 0..3).len(), kept(&shelf, 300..303).len()), (3, 3));
        assert_eq!(kept(&shelf, 100..200).len(), 3);
    }

    #[test]
    fn one_owner_may_fill_all_of_it() {
        let shelf = Shelf::new(100);
        (0..50).for_each(|name| shelf.put(name, name, None, 10));
        assert_eq!(kept(&shelf, 0..50), (40..50).collect::<Vec<_>>());
        assert_eq!((shelf.get(&39), shelf.get(&40)), (None, Some(40)));
    }

    #[test]
    fn a_thing_that_grows_stays_its_first_owner_s() {
        let shelf = Shelf::new(100);
        shelf.put(1, 1, owner("a"), 10);
        shelf.put(2, 2, owner("b"), 10);
        shelf.put(1, 3, owner("b"), 70);
        assert_eq!((shelf.get(&1), shelf.load()), (Some(3), (80, 2)));
        shelf.put(3, 3, owner("b"), 30);
        assert_eq!(kept(&shelf, 1..4), [2, 3], "the growth is charged to a");
        shelf.put(4, 4, owner("b"), 101);
        assert_eq!(
            kept(&shelf, 1..5),
            [2, 3],
            "what is heavier than all there may be is not kept"
        );
        assert_eq!(shelf.load(), (40, 2));
    }
}
