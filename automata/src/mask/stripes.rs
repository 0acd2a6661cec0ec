//! A cache in which threads keep separate copies of values.
//!
//! A thread keeps its values in a *stripe* that it shares with few others. In one table for all, threads that
//! never wait for one another still move the lock and reference counts between processors: two threads
//! together did only one and a half times the work of one.
//!
//! # Why stripes
//!
//! A single concurrent table never blocked, but its lock and its reference counts moved between the caches of
//! the cores. Each stripe serves every fourth thread, and a thread copies a mask that another one computed
//! into its own stripe.

use std::hash::Hash;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// Values by key, within a bound on bytes.
#[derive(Debug)]
pub(crate) struct Stripes<K, V> {
    stripes: [Stripe<K, V>; STRIPES],
    /// The stripes that hold values, one bit for each.
    used: AtomicU8,
    bytes: AtomicUsize,
    bound: usize,
}

/// The number of stripes. Each may come to hold a copy of every value, so more stripes leave less room for
/// each.
pub(crate) const STRIPES: usize = 4;

/// A stripe, aligned to cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<K, V>(Mutex<FxHashMap<K, V>>);

impl<K, V> Stripe<K, V> {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<K, V>> {
        // After a panic, a map that lacks a value or has one more is still valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the stripe of this thread; threads are assigned in turn.
fn own() -> usize {
    static DEALT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = DEALT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    OWN.with(|own| *own)
}

impl<K: Eq + Hash, V: Clone> Stripes<K, V> {
    /// Creates an empty cache. When it exceeds `bound` bytes, all values are dropped.
    pub(crate) fn new(bound: usize) -> Stripes<K, V> {
        Stripes {
            stripes: std::array::from_fn(|_| Stripe(Mutex::default())),
            used: AtomicU8::new(0),
            bytes: AtomicUsize::new(0),
            bound,
        }
    }

    /// Returns the bytes that the values take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the value in this thread's stripe.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.stripes[own()].lock().get(key).cloned()
    }

    /// Returns the value from another stripe.
    pub(crate) fn elsewhere(&self, key: &K) -> Option<V> {
        let (own, used) = (own(), self.used.load(Ordering::Relaxed));
        let others = (0..STRIPES).filter(|&stripe| stripe != own && used >> stripe & 1 == 1);
        let mut found = others.filter_map(|stripe| self.stripes[stripe].lock().get(key).cloned());
        found.next()
    }

    /// Stores a value that takes this many bytes, replacing any value with the same key.
    pub(crate) fn keep(&self, key: K, value: V, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.bound {
            for stripe in &self.stripes {
                stripe.lock().clear();
            }
            self.bytes.store(bytes, Ordering::Relaxed);
        }
        let own = own();
        self.used.fetch_or(1 << own, Ordering::Relaxed);
        self.stripes[own].lock().insert(key, value);
    }
}
