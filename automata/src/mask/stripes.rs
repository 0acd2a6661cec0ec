//! What the threads of a grammar remember each for itself.
//!
//! A thread keeps what it found in a *stripe* that few others share with it. In one table for all, threads
//! that never wait for one another still pass the counts of its locks and values from processor to processor:
//! two threads got done one and a half times as much as one.
//!
//! # Why stripes
//!
//! A single concurrent table never blocked, but its lock and its reference counts moved between the caches
//! of the cores. Each stripe serves every fourth thread, and a thread copies a mask that another one found
//! into its own stripe.

use std::hash::Hash;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// Values by key, within a bound of bytes.
#[derive(Debug)]
pub(crate) struct Stripes<K, V> {
    stripes: [Stripe<K, V>; STRIPES],
    /// The stripes that hold something, a bit for each.
    used: AtomicU8,
    bytes: AtomicUsize,
    bound: usize,
}

/// Each may come to hold a copy of everything, so that more of them leave less room for each.
pub(crate) const STRIPES: usize = 4;

/// Alone in its lines of the processor's cache.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<K, V>(Mutex<FxHashMap<K, V>>);

impl<K, V> Stripe<K, V> {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<K, V>> {
        // A map that lacks a value, or has one more, is as good as any.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stripe of this thread: threads are dealt out in turn.
fn own() -> usize {
    static DEALT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = DEALT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    OWN.with(|own| *own)
}

impl<K: Eq + Hash, V: Clone> Stripes<K, V> {
    /// Nothing yet; beyond `bound` bytes all is dropped.
    pub(crate) fn new(bound: usize) -> Stripes<K, V> {
        Stripes {
            stripes: std::array::from_fn(|_| Stripe(Mutex::default())),
            used: AtomicU8::new(0),
            bytes: AtomicUsize::new(0),
            bound,
        }
    }

    /// The memory that is taken, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What this thread knows.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.stripes[own()].lock().get(key).cloned()
    }

    /// What another thread found.
    pub(crate) fn elsewhere(&self, key: &K) -> Option<V> {
        let (own, used) = (own(), self.used.load(Ordering::Relaxed));
        let others = (0..STRIPES).filter(|&stripe| stripe != own && used >> stripe & 1 == 1);
        let mut found = others.filter_map(|stripe| self.stripes[stripe].lock().get(key).cloned());
        found.next()
    }

    /// Keeps a value that takes this number of bytes, in the place of one that is known by the same key.
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
