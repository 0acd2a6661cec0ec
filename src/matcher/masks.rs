//! The masks that a grammar remembers.
//!
//! Each thread has its own; what another thread found first is copied.

use std::sync::Arc;

use crate::mask::{Mask, Stripes};

/// Masks by state, within a bound of bytes.
#[derive(Debug)]
pub(super) struct Masks(Stripes<u32, Arc<Mask>>);

impl Masks {
    /// None yet; beyond `bound` bytes all are dropped.
    pub(super) fn new(bound: usize) -> Masks {
        Masks(Stripes::new(bound))
    }

    pub(super) fn bound(&self) -> usize {
        self.0.bound()
    }

    /// The memory that the masks take.
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The mask of a state, computed if no thread has found it before.
    pub(super) fn get(&self, state: u32, compute: impl FnOnce() -> Mask) -> Arc<Mask> {
        if let Some(known) = self.0.get(&state) {
            return known;
        }
        let elsewhere = self.0.elsewhere(&state);
        let mask = Arc::new(elsewhere.map_or_else(compute, |mask| Mask::clone(&mask)));
        self.0.keep(state, mask.clone(), mask.words().len() * 4 + 64);
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::STRIPES;

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
