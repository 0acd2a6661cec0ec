//! The masks that a grammar remembers.
//!
//! A thread keeps masks in a *stripe* that few others share with it, and copies into it what another thread found
//! first. In one table for all, threads that never wait for one another still pass the counts of its locks and of its
//! masks from processor to processor: two threads got done one and a half times as much as one.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::mask::Mask;

/// Masks by state, within a bound of bytes.
#[derive(Debug)]
pub(super) struct Masks {
    stripes: [Stripe; STRIPES],
    /// The stripes that hold masks, a bit for each.
    used: AtomicU8,
    bytes: AtomicUsize,
    bound: usize,
}

/// Each may come to hold a copy of every mask, so that more of them leave less room for each.
const STRIPES: usize = 4;

/// Alone in its lines of the processor's cache.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(Mutex<FxHashMap<u32, Arc<Mask>>>);

impl Stripe {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<u32, Arc<Mask>>> {
        // A map that lacks a mask, or has one more, is as good as any.
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

impl Masks {
    /// None yet; beyond `bound` bytes all are dropped.
    pub(super) fn new(bound: usize) -> Masks {
        Masks {
            stripes: Default::default(),
            used: AtomicU8::new(0),
            bytes: AtomicUsize::new(0),
            bound,
        }
    }

    pub(super) fn bound(&self) -> usize {
        self.bound
    }

    /// The memory that the masks take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The mask of a state, computed if no thread has found it before.
    pub(super) fn get(&self, state: u32, compute: impl FnOnce() -> Mask) -> Arc<Mask> {
        let own = own();
        if let Some(known) = self.stripes[own].lock().get(&state) {
            return known.clone();
        }
        let found = self.found_elsewhere(state, own).unwrap_or_else(compute);
        let mask = Arc::new(found);
        let bytes = mask.words().len() * 4 + 64;
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.bound {
            for stripe in &self.stripes {
                stripe.lock().clear();
            }
            self.bytes.store(bytes, Ordering::Relaxed);
        }
        self.used.fetch_or(1 << own, Ordering::Relaxed);
        self.stripes[own].lock().entry(state).or_insert(mask).clone()
    }

    /// A copy of what another thread found.
    fn found_elsewhere(&self, state: u32, own: usize) -> Option<Mask> {
        let used = self.used.load(Ordering::Relaxed);
        let others = (0..STRIPES).filter(|&stripe| stripe != own && used >> stripe & 1 == 1);
        let mut found = others.filter_map(|stripe| self.stripes[stripe].lock().get(&state).cloned());
        found.next().map(|mask| Mask::clone(&mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(token: u32) -> Mask {
        let mut mask = Mask::empty(64);
        mask.insert(token);
        mask
    }

    #[test]
    fn what_one_thread_finds_no_other_computes() {
        let masks = Masks::new(1 << 20);
        let first = masks.get(7, || mask(3));
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                scope.spawn(|| assert_eq!(masks.get(7, || unreachable!()), first));
            }
        });
        assert!(masks.bytes() <= STRIPES * (8 + 64));
    }

    #[test]
    fn beyond_the_bound_all_are_dropped_and_found_again() {
        let masks = Masks::new(3 * (8 + 64));
        for state in 0..100 {
            assert!(masks.get(state, || mask(state % 64)).contains(state % 64));
            assert!(masks.bytes() <= masks.bound());
        }
        let mut computed = false;
        masks.get(0, || {
            computed = true;
            mask(0)
        });
        assert!(computed, "it was dropped long ago");
    }
}
