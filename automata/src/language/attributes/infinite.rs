//! From which states of a table infinitely many words can be completed: those from which a cycle is reached.
//!
//! Found when it is asked, and no further than it takes: an endless language is soon on a cycle, and what was
//! looked through without finding one is finite for good. After trimming every cycle leads to words.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::language::graph::DEAD;

/// What is known of each state.
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

    /// Whether infinitely many words go on from a state of the table `next`. All questions together take
    /// O(edges) where the answers are no; a yes takes as long as the way to a cycle is found. What is not
    /// known yet takes a list of the states.
    pub(crate) fn holds(&self, state: u32, next: &[u32], stride: usize) -> bool {
        if let Some(known) = self.known(state) {
            return known;
        }
        let mut on_path = vec![false; self.known.len()];
        let mut path = vec![(state, 0usize)];
        on_path[state as usize] = true;
        while let Some((at, class)) = path.last_mut() {
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
        // Whoever looks finds the same, so that it does not matter who writes it.
        self.known[state as usize].store(found, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of one class for each edge of the widest state.
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
            // Whatever was asked before.
            let infinite = Infinite::new(5);
            infinite.holds(first, &next, 2);
            let all: Vec<bool> = (0..5).map(|state| infinite.holds(state, &next, 2)).collect();
            assert_eq!(all, [true, false, true, false, true], "after {first}");
        }
    }
}
