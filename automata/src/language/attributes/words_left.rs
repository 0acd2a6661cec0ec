//! The numbers of words that can be completed from the states of a table, where they are finite.
//!
//! Deciding whether an unwritten key remains requires the number of keys, at each byte that is looked ahead.
//! The numbers are computed backwards from the ends of the words, once for each state, and saturate.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::language::graph::DEAD;
use crate::work::spend;

/// For each state, one more than its number of words, or zero if that is not known.
#[derive(Debug)]
pub(crate) struct WordsLeft {
    known: Box<[AtomicU32]>,
    /// The number of bytes in each class.
    bytes: Box<[u32]>,
}

const UNKNOWN_COUNT: u32 = 0;

impl WordsLeft {
    pub(crate) fn new(states: usize, stride: usize, classes: &[u8; 256]) -> WordsLeft {
        let mut bytes = vec![0; stride];
        for &class in classes {
            bytes[class as usize] += 1;
        }
        WordsLeft {
            known: (0..states).map(|_| AtomicU32::new(UNKNOWN_COUNT)).collect(),
            bytes: bytes.into(),
        }
    }

    /// Returns the number of words from a state that reaches no cycle; saturates at `u32::MAX - 1`. All calls
    /// together take O(edges).
    pub(crate) fn of(&self, state: u32, next: &[u32], accepting: &[bool]) -> u32 {
        let stride = self.bytes.len();
        let mut open = vec![state];
        while let Some(&at) = open.last() {
            spend(1);
            if self.known(at).is_some() {
                open.pop();
                continue;
            }
            let row = &next[at as usize * stride..(at as usize + 1) * stride];
            let before = open.len();
            let mut words = u32::from(accepting[at as usize]);
            for (&packed, &bytes) in row.iter().zip(&self.bytes) {
                if packed == DEAD {
                    continue;
                }
                match self.known(packed >> 1) {
                    Some(more) => words = words.saturating_add(more.saturating_mul(bytes)),
                    None => open.push(packed >> 1),
                }
            }
            if open.len() == before {
                self.known[at as usize].store(words.min(u32::MAX - 1) + 1, Ordering::Relaxed);
                open.pop();
            }
        }
        self.known(state).unwrap_or(0)
    }

    fn known(&self, state: u32) -> Option<u32> {
        // All threads compute the same value, so it does not matter which one wrote it.
        self.known[state as usize].load(Ordering::Relaxed).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::grammar::{Part, Regular};
    use crate::language::{Cursor, Terminal};
    use crate::limits::Limits;

    /// Counts the words from a state by reading each of them.
    fn count(terminal: &Terminal, cursor: Cursor) -> usize {
        let next = (0..=255).filter_map(|byte| terminal.next(cursor, byte));
        usize::from(terminal.is_accepting(cursor)) + next.map(|next| count(terminal, next)).sum::<usize>()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

        #[test]
        fn words_are_counted_as_they_are_read(
            words in prop::collection::vec("[ab\u{e9}]{1,3}", 1..6),
            times in 0..3usize,
            last in "[x-z]{1,2}",
            first in 0..64u32,
        ) {
            let pattern = format!("({}){{0,{times}}}[{last}]?[0-9]?", words.join("|"));
            let hir = regex_syntax::parse(&pattern).expect("the test's pattern is well formed");
            let regular = Regular::of(vec![Part::Match(hir.into())]);
            let terminal = Terminal::new(&regular, &Limits::default()).expect("the test's pattern compiles");
            let states = terminal.len() as u32;
            // The result does not depend on earlier queries.
            for state in (0..states).map(|state| (state + first) % states) {
                let cursor = Cursor { state, count: 0 };
                let words = count(&terminal, cursor);
                prop_assert!(terminal.has_more_words(cursor, words - 1) && !terminal.has_more_words(cursor, words));
            }
        }
    }

    #[test]
    fn as_many_words_as_fit_no_number_are_enough() {
        let hir = regex_syntax::parse("[a-z]{40}").expect("the test's pattern is well formed");
        let regular = Regular::of(vec![Part::Match(hir.into())]);
        let terminal = Terminal::new(&regular, &Limits::default()).expect("the test's pattern compiles");
        assert!(terminal.has_more_words(terminal.start(), 1 << 30));
    }
}
