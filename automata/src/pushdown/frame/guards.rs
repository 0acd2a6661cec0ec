//! The sets of bytes that must not follow some words, numbered.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use crate::language::{ByteSet, Terminal};

/// The number of a set of bytes that must not follow a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Guard(u32);

/// The sets of a grammar, and the guard of each state of its terminals.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    sets: Vec<ByteSet>,
    /// The guards of the states of each terminal; none for a terminal whose words may be followed by
    /// anything.
    of_states: Vec<Box<[Option<Guard>]>>,
}

impl Guards {
    /// Numbers the sets of these terminals. O(states).
    pub(crate) fn new(terminals: &[Option<Arc<Terminal>>]) -> Guards {
        let mut guards = Guards::default();
        let mut known: HashMap<ByteSet, Guard> = HashMap::new();
        for terminal in terminals {
            let terminal = terminal.iter().filter(|terminal| terminal.blocks());
            let states = terminal.flat_map(|terminal| {
                let states = 0..terminal.len() as u32;
                states.map(|state| terminal.blocked(state).copied())
            });
            let of_states = states.map(|blocked| {
                let blocked = blocked?;
                let new = Guard(guards.sets.len() as u32);
                let guard = *known.entry(blocked).or_insert(new);
                if guard == new {
                    guards.sets.push(blocked);
                }
                Some(guard)
            });
            let of_states = of_states.collect();
            guards.of_states.push(of_states);
        }
        guards
    }

    /// Returns the guard after a word that ends in a state of a terminal.
    #[inline]
    pub(crate) fn of(&self, terminal: u32, state: u32) -> Option<Guard> {
        let of_states = self.of_states.get(terminal as usize)?;
        of_states.get(state as usize).copied().flatten()
    }

    /// Returns the bytes that must not follow.
    pub(crate) fn set(&self, guard: Guard) -> &ByteSet {
        &self.sets[guard.0 as usize]
    }

    /// Returns `true` if some words must not be followed by some bytes.
    pub(crate) fn are_there(&self) -> bool {
        !self.sets.is_empty()
    }
}
