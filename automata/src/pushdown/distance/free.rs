//! Words of a regular language that differ from all of some given words.
//!
//! If a state loops on several bytes, any number of words go through it: after enough repetitions, there are
//! more of them than words that are not free.
//!
//! ```text
//!   a key    ─'"'─► ○ ─'"'─► ●       after "name: four more letters and a quote for any 4,000 taken keys
//!                   └─◄ letters
//! ```

use std::collections::VecDeque;

use super::Distances;
use crate::language::{Cursor, Terminal};
use crate::language::{NEVER, plus};

/// The maximum number of keys of an object list for which a bound is known.
pub(super) const KEYS: usize = 256;

/// The smallest number of bytes that must lead from a state to itself for it to count as free.
const WAYS: usize = 8;

/// The maximum number of states of a language that is examined.
const STATES: usize = 1 << 10;

/// The lengths of free words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeWords {
    /// The greatest number of steps from a state in the middle of a word to a state with a loop, and from
    /// there to the end.
    detour: u64,
}

impl FreeWords {
    /// Computes the bound; returns `None` if none is known. O(states).
    pub(crate) fn new(terminal: &Terminal, index: u32, shortest: &Distances) -> Option<FreeWords> {
        if terminal.bounds().is_some() || terminal.len() > STATES {
            return None;
        }
        let next = |state| (0..=u8::MAX).filter_map(move |byte| terminal.next_unit(state, byte));
        let mut into = vec![Vec::new(); terminal.len()];
        let mut detours = vec![NEVER; terminal.len()];
        let mut ends: Vec<(u64, u32)> = Vec::new();
        for state in 0..terminal.len() as u32 {
            let mut others: Vec<u32> = next(state).map(|(to, _)| to).collect();
            let itself = others.iter().filter(|&&to| to == state).count();
            if itself >= WAYS {
                ends.push((shortest.of_cursor(index, at(state)), state));
            }
            others.sort_unstable();
            others.dedup();
            others.iter().for_each(|&to| into[to as usize].push(state));
        }
        // Wherever the detour leads, this suffices to reach the end.
        let furthest = ends.iter().map(|end| end.0).max()?;
        let mut open: VecDeque<u32> = VecDeque::new();
        for (_, state) in ends {
            detours[state as usize] = furthest;
            open.push_back(state);
        }
        while let Some(state) = open.pop_front() {
            for &from in &into[state as usize] {
                if detours[from as usize] == NEVER {
                    detours[from as usize] = plus(detours[state as usize], 1);
                    open.push_back(from);
                }
            }
        }
        let going = (0..terminal.len()).filter(|&state| !terminal.is_stuck(at(state as u32)));
        let detour = going.map(|state| detours[state]).max()?;
        (detour != NEVER).then_some(FreeWords { detour })
    }

    /// Returns a bound on the number of steps, from any place in a word, to the end of a word that is none of
    /// the `taken` ones.
    pub(crate) fn longest(&self, taken: usize) -> u64 {
        let ways = (0..).find(|&letters| WAYS.saturating_pow(letters) > taken);
        plus(self.detour, ways.map_or(NEVER, u64::from))
    }
}

fn at(state: u32) -> Cursor {
    Cursor { state, count: 0 }
}
