//! An index from the hashes of values to their numbers.
//!
//! The machine numbers everything that it finds, a dozen values for a token that leads to a new state, and
//! looks up many more. The values themselves are stored in lists, so a place here holds a number and a part
//! of its hash, in one word that is read without a lock:
//!
//! ```text
//!   hash ── upper half ─┬─ where to begin looking     │ –  │ b7… 3 │ 19… 1 │ –  │ 40… 2 │ …
//!                       └─ compared before the thing            ▲ the first place that fits, or an empty one
//! ```
//!
//! Writers wait for each other. When three quarters of the places are taken, a table four times as large
//! replaces the current one. The old table remains, since others may be reading it; a thread that misses a
//! number there looks again before it adds one.

use std::hash::{BuildHasher, Hash};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use rustc_hash::FxBuildHasher;

use super::atomics::{AtomicU64, AtomicUsize, Mutex, OnceLock};

/// An index of numbers by hash.
#[derive(Debug, Default)]
pub(crate) struct Index {
    tables: [OnceLock<Table>; TABLES],
    /// The index of the table that holds all numbers.
    whole: AtomicUsize,
    /// The number of entries. The lock is held while one is added.
    count: Mutex<usize>,
}

/// A table. The upper half of a place is that of the hash, the lower half is the number plus one; an empty
/// place is 0.
type Table = Box<[AtomicU64]>;

/// The number of places of the first table. Small under loom, so that the table grows in those tests.
const PLACES: usize = if cfg!(loom) { 4 } else { 32 };

/// The factor by which each table is larger than the previous one.
const GROWTH: usize = 4;

/// The maximum number of tables. The last one has more places than there are numbers.
const TABLES: usize = 15;

/// Returns the hash of a value for an [`Index`].
pub(crate) fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    // The upper half has to depend on all bits, which is not so for this hasher alone.
    FxBuildHasher.hash_one(value).wrapping_mul(SPREAD)
}

/// An odd number with no bit pattern, from the golden ratio.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Index {
    /// Returns the number with this hash for which `is` returns `true`. Expected O(1).
    pub(crate) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let table = self.tables[self.whole.load(Ordering::Acquire)].get()?;
        let mut found = None;
        first_place(table, hash, |place| {
            found = Some(place as u32 - 1).filter(|&number| is(number));
            found.is_some()
        });
        found
    }

    /// Returns the number of a value; if it has none yet, `add` assigns one. Expected O(1) amortised.
    pub(crate) fn find_or_add<T>(
        &self,
        hash: u64,
        value: T,
        is: impl Fn(&T, u32) -> bool,
        add: impl FnOnce(T) -> u32,
    ) -> u32 {
        // A number that was added is in its place, even if the thread that added it panicked.
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.find(hash, |number| is(&value, number)) {
            return found;
        }
        let table = self.with_room(*count);
        let number = add(value);
        let free = first_place(table, hash, |_| false);
        table[free].store(upper(hash) | (u64::from(number) + 1), Ordering::Release);
        *count += 1;
        number
    }

    /// Returns a table with room for one more than `count` numbers.
    fn with_room(&self, count: usize) -> &Table {
        let mut whole = self.whole.load(Ordering::Relaxed);
        if count * 4 >= places(whole) * 3 {
            self.tables[whole + 1].get_or_init(|| grown(&self.tables[whole], places(whole + 1)));
            whole += 1;
            self.whole.store(whole, Ordering::Release);
        }
        self.tables[whole].get_or_init(|| empty(PLACES))
    }
}

/// Returns the number of places of a table.
fn places(table: usize) -> usize {
    PLACES * GROWTH.pow(table as u32)
}

fn empty(places: usize) -> Table {
    (0..places).map(|_| AtomicU64::new(0)).collect()
}

/// Returns a larger table with the same numbers.
fn grown(table: &OnceLock<Table>, places: usize) -> Table {
    let larger = empty(places);
    for place in table.get().into_iter().flatten() {
        let place = place.load(Ordering::Relaxed);
        if place != 0 {
            let free = first_place(&larger, place, |_| false);
            larger[free].store(place, Ordering::Relaxed);
        }
    }
    larger
}

fn upper(hash: u64) -> u64 {
    hash >> 32 << 32
}

/// Returns the first place with this hash at which `stops` returns `true`, or the empty place after them.
fn first_place(table: &Table, hash: u64, mut stops: impl FnMut(u64) -> bool) -> usize {
    let mut at = (hash >> 32) as usize & (table.len() - 1);
    loop {
        let place = table[at].load(Ordering::Acquire);
        if place == 0 || upper(place) == upper(hash) && stops(place) {
            return at;
        }
        at = (at + 1) & (table.len() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers a value in a list; `hash` is given by the caller.
    fn number(index: &Index, list: &boxcar::Vec<usize>, value: usize, hash: u64) -> u32 {
        let is = |value: &usize, number: u32| list[number as usize] == *value;
        index
            .find(hash, |number| is(&value, number))
            .unwrap_or_else(|| index.find_or_add(hash, value, is, |value| list.push(value) as u32))
    }

    #[test]
    fn values_keep_their_numbers_as_tables_grow() {
        for kinds in [1_usize, 7, 10_000] {
            let (index, list) = (Index::default(), boxcar::Vec::new());
            let hash = |value: usize| hash_of(&(value % kinds));
            for value in 0..500 * kinds.min(10) {
                assert_eq!(
                    index.find(hash(value), |number| list[number as usize] == value),
                    None
                );
                assert_eq!(number(&index, &list, value, hash(value)) as usize, value);
                assert_eq!(
                    number(&index, &list, value / 2, hash(value / 2)) as usize,
                    value / 2
                );
            }
        }
    }

    #[test]
    fn threads_agree_on_numbers() {
        let (index, list) = (Index::default(), boxcar::Vec::new());
        let all = || {
            let values = (0..20_000).map(|step| step * 7919 % 3001);
            values.map(|value| number(&index, &list, value, hash_of(&value)))
        };
        let found = std::thread::scope(|scope| {
            let threads = [0; 4].map(|_| scope.spawn(|| all().collect::<Vec<u32>>()));
            threads.map(|thread| thread.join().expect("no thread fails"))
        });
        assert!(found.iter().all(|numbers| *numbers == found[0]));
        assert_eq!(list.count(), 3001);
    }
}
