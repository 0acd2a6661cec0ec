//! Finds the states from which infinitely many words can be completed: those from which a cycle is reachable.
//!
//! Computed on demand, and no further than needed: in an infinite language a cycle is found soon, and states
//! that were searched without finding one are known to be finite. After trimming, every cycle leads to words.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::language::graph::DEAD;
use crate::work::spend;

/// For each state, whether it is known to be finite or infinite.
#[derive(Debug)]
pub(crate) struct Infinite {
    known: Box<[AtomicU8]>,
}

const UNKNOWN_STATE: u8 = 0;
const FINITE: u8 = 1;
const INFINITE: u8 = 2;

impl Infinite {
    pub(crate) fn new(states: usize) -> Infinite {
        Infinite {
            known: (0..states).map(|_| AtomicU8::new(UNKNOWN_STATE)).collect(),
        }
    }

    /// Returns `true` if infinitely many words continue from a state of the table `next`. All calls that
    /// return `false` take O(edges) together; a call that returns `true` takes as long as finding a path to a
    /// cycle. A state that is not known yet takes a list of the states.
    pub(crate) fn holds(&self, state: u32, next: &[u32], stride: usize) -> bool {
        if let Some(known) = self.known(state) {
            return known;
        }
        let mut on_path = vec![false; self.known.len()];
        let mut path = vec![(state, 0usize)];
        on_path[state as usize] = true;
        while let Some((at, class)) = path.last_mut() {
            spend(1);
            let (from, row) = (*at as usize, *at as usize * stride);
            let mut edges = next[row + *class..row + stride].iter();
            let edge = edges.position(|&packed| packed != DEAD);
            let Some(offset) = edge else {
                self.settle(*at, FINITE);
                on_path[from] = false;
                path.pop();
                continue;
            };
            let target = next[row + *class + offset] >> 1;
            *class += offset + 1;
            match self.known(target) {
                Some(false) => {}
                None if !on_path[target as usize] => {
                    on_path[target as usize] = true;
                    path.push((target, 0));
                }
                Some(true) | None => {
                    path.iter().for_each(|&(at, _)| self.settle(at, INFINITE));
                    return true;
                }
            }
        }
        false
    }

    fn known(&self, state: u32) -> Option<bool> {
        match self.known[state as usize].load(Ordering::Relaxed) {
            UNKNOWN_STATE => None,
            found => Some(found == INFINITE),
        }
    }

    fn settle(&self, state: u32, found: u8) {
        // All threads compute the same value, so it does not matter which one writes it.
        self.known[state as usize].store(found, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a table with as many classes as the widest state has edges.
    fn table(edges: &[&[u32]], stride: usize) -> Vec<u32> {
        let row = |targets: &&[u32]| {
            let mut row: Vec<u32> = targets.iter().map(|target| target << 1).collect();
            row.resize(stride, DEAD);
            row
        };
        edges.iter().flat_map(row).collect()
    }

    #[test]
    fn a_state_is_infinite_where_it_reaches_a_cycle() {
        let next = table(&[&[1, 2], &[3], &[2, 3], &[], &[0]], 2);
        for first in 0..5 {
            // The result does not depend on earlier queries.
            let infinite = Infinite::new(5);
            infinite.holds(first, &next, 2);
            let all: Vec<bool> = (0..5).map(|state| infinite.holds(state, &next, 2)).collect();
            assert_eq!(all, [true, false, true, false, true], "after {first}");
        }
    }
}
