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

    /// The mask of a state, which is that of the state that is `like` it; computed if no thread has found it before.
    pub(super) fn get(
        &self,
        state: u32,
        like: impl FnOnce() -> u32,
        compute: impl FnOnce(u32) -> Mask,
    ) -> Arc<Mask> {
        if let Some(known) = self.0.get(&state) {
            return known;
        }
        let like = like();
        let own = (like != state).then(|| self.0.get(&like)).flatten();
        let mask = own.unwrap_or_else(|| {
            let elsewhere = self.0.elsewhere(&like);
            let mask = elsewhere.map_or_else(|| compute(like), |mask| Mask::clone(&mask));
            let mask = Arc::new(mask);
            self.0.keep(like, mask.clone(), mask.words().len() * 4 + ENTRY);
            mask
        });
        if like != state {
            self.0.keep(state, mask.clone(), ENTRY);
        }
        mask
    }
}

/// The memory of a mask that is known by one more state.
const ENTRY: usize = 64;

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
        let first = masks.get(7, || 7, |_| mask(3));
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                scope.spawn(|| assert_eq!(masks.get(7, || 7, |_| unreachable!()), first));
            }
        });
        assert!(masks.bytes() <= STRIPES * (8 + 64));
    }

    #[test]
    fn beyond_the_bound_all_are_dropped_and_found_again() {
        let masks = Masks::new(3 * (8 + 64));
        for state in 0..100 {
            assert!(
                masks
                    .get(state, || state, |like| mask(like % 64))
                    .contains(state % 64)
            );
            assert!(masks.bytes() <= masks.bound());
        }
        let mut computed = false;
        masks.get(
            0,
            || 0,
            |_| {
                computed = true;
                mask(0)
            },
        );
        assert!(computed, "it was dropped long ago");
    }
}
