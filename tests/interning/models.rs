//! The models: the operations of threads on one table, and the properties that hold in every order.

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

use crate::index::Index;
use crate::interner::{Chains, Interner, NIL};

/// A model: its name, the maximum number of preemptions in one run (`None` is no bound), and the program.
type Model = (&'static str, Option<usize>, fn());

const MODELS: [Model; 8] = [
    ("equal values have one number", None, equal_values),
    ("different values have different numbers", None, different_values),
    ("values of one hash are told apart", None, one_hash),
    ("a number that is found has its whole value", None, whole_values),
    ("growth loses nothing", None, growth),
    (
        "growth loses nothing that is added meanwhile",
        None,
        growth_of_two,
    ),
    ("three threads agree", Some(2), three_threads),
    ("equal lists have one number", None, equal_lists),
];

/// The number of runs of the current model's program.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Runs all models; panics at the first order of threads in which one fails.
pub(crate) fn run() {
    for (name, interruptions, program) in MODELS {
        RUNS.store(0, Ordering::Relaxed);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = interruptions;
        builder.check(move || {
            RUNS.fetch_add(1, Ordering::Relaxed);
            program();
        });
        println!("{name}: ok in {} orders", RUNS.load(Ordering::Relaxed));
    }
    println!("{} models hold", MODELS.len());
}

/// A value of more than a word, so that half of one could be seen.
type Value = (u64, [u64; 2]);

fn value(number: u64) -> Value {
    (number, [number + 1, number + 2])
}

/// A thread that gives these values numbers, and looks at each value by its number at once.
fn interning<const N: usize>(interner: &Arc<Interner<Value>>, values: [u64; N]) -> JoinHandle<[u32; N]> {
    let interner = interner.clone();
    thread::spawn(move || values.map(|number| interned(&interner, number)))
}

fn interned(interner: &Interner<Value>, number: u64) -> u32 {
    let id = interner.intern(value(number));
    assert_eq!(*interner.get(id), value(number), "the number leads to the value");
    id
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("no thread fails")
}

fn equal_values() {
    let interner = Arc::new(Interner::default());
    let threads = [1, 1].map(|number| interning(&interner, [number]));
    let [one, other] = threads.map(joined);
    assert_eq!((one, other, interner.len()), ([0], [0], 1));
}

fn different_values() {
    let interner = Arc::new(Interner::default());
    let [one, other] = [1, 2].map(|number| interning(&interner, [number])).map(joined);
    assert_ne!(one, other);
    assert_eq!(interner.len(), 2);
    assert_eq!(
        [interned(&interner, 1), interned(&interner, 2)],
        [one[0], other[0]]
    );
}

/// As in [`different_values`], where the second search begins at the place that the first one takes.
fn one_hash() {
    const HASH: u64 = 5 << 32;
    let tables = Arc::new((Index::default(), boxcar::Vec::new()));
    let number = |tables: &(Index, boxcar::Vec<u64>), value: u64| {
        let (index, values) = tables;
        let is = |value: &u64, number: u32| values[number as usize] == *value;
        let add = |value| values.push(value) as u32;
        index.find_or_add(HASH, value, is, add)
    };
    let threads = [1, 2].map(|value| {
        let tables = tables.clone();
        thread::spawn(move || number(&tables, value))
    });
    let [one, other] = threads.map(joined);
    let (index, values) = &*tables;
    assert_ne!(one, other);
    for (value, id) in [(1, one), (2, other)] {
        assert_eq!(
            index.find(HASH, |number| values[number as usize] == value),
            Some(id)
        );
    }
}

/// Whoever finds a number without the lock must see what was written before it was published.
fn whole_values() {
    let interner = Arc::new(Interner::default());
    interned(&interner, 1);
    let writer = interning(&interner, [2]);
    let id = interned(&interner, 2);
    assert_eq!((joined(writer), interned(&interner, 1)), ([id], 0));
}

/// The first table is full up to its bound: the next value moves all into a larger one, which others read
/// meanwhile.
fn growth() {
    let interner = Arc::new(Interner::default());
    let old = [0, 1, 2].map(|number| interned(&interner, number));
    let writer = interning(&interner, [3]);
    let known = interned(&interner, 1);
    let same = interned(&interner, 3);
    assert_eq!((known, joined(writer)), (old[1], [same]));
    assert_eq!(
        [0, 1, 2, 3].map(|number| interned(&interner, number)),
        [old[0], old[1], old[2], same]
    );
    assert_eq!(interner.len(), 4);
}

/// Either of two threads may be the one that moves all into a larger table, and the other adds to what it
/// finds.
fn growth_of_two() {
    let interner = Arc::new(Interner::default());
    let old = [0, 1, 2].map(|number| interned(&interner, number));
    let [one, other] = [3, 4].map(|number| interning(&interner, [number])).map(joined);
    let all = [0, 1, 2, 3, 4].map(|number| interned(&interner, number));
    assert_eq!(all, [old[0], old[1], old[2], one[0], other[0]]);
    assert_eq!(interner.len(), 5);
}

fn three_threads() {
    let interner = Arc::new(Interner::default());
    let [one, other] = [[1], [2]].map(|values| interning(&interner, values));
    let own = interned(&interner, 1);
    let (one, other) = (joined(one), joined(other));
    assert_eq!((one, interner.len()), ([own], 2));
    assert_ne!(one, other);
}

/// Lists are nodes that name the node before them, so that a list is complete only if all of its nodes are.
fn equal_lists() {
    let chains = Arc::new(Chains::default());
    let list = |chains: &Chains<u8>| {
        let list = chains.push(chains.push(NIL, 1), 2);
        assert_eq!(chains.to_vec(list), [1, 2]);
        list
    };
    let other = {
        let chains = chains.clone();
        thread::spawn(move || list(&chains))
    };
    assert_eq!((list(&chains), chains.len()), (joined(other), 2));
}
