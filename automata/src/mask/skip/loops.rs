//! Finds the characters that lead a state back to itself, or to a state with the same language.
//!
//! Most states of most languages wait for some character and stay where they are on all others: in the search
//! for `foo` every `a` leads back to the state in which it was read. All tokens in a subtree of such
//! characters stay in the language, and the walk continues after the subtree; of Llama's 128,000 tokens one
//! in ten is visited.

use crate::language::{LanguageId, Terminal};
use crate::vocab::{Alphabet, BEYOND_ASCII, Trie, UNSOUND, Within, ascii, beyond};

/// Returns the characters that lead back to a state of a terminal, computed on first use. States with equal
/// language ids count as the same state, if the terminal's ids are known.
#[inline]
pub(crate) fn of(terminal: &Terminal, state: u32) -> Alphabet {
    terminal.loops(state, |names| {
        let search = LoopSearch {
            terminal,
            names,
            home: state,
        };
        search.find()
    })
}

/// Returns `true` if every path through a subtree leads back to the state.
#[inline]
pub(crate) fn pass_over(terminal: &Terminal, trie: &Trie, node: usize, state: u32) -> bool {
    let is_leaf = trie.nodes()[node].end as usize == node + 1;
    !is_leaf && trie.alphabet(node) & !of(terminal, state) == 0
}

struct LoopSearch<'a> {
    terminal: &'a Terminal,
    names: Option<&'a [LanguageId]>,
    home: u32,
}

impl LoopSearch<'_> {
    fn is_home(&self, state: u32) -> bool {
        let same = |names: &[LanguageId]| names[state as usize] == names[self.home as usize];
        state == self.home || self.names.is_some_and(same)
    }

    fn find(&self) -> Alphabet {
        let next = |byte| self.terminal.next_state(self.home, byte);
        let stays = |&byte: &u8| next(byte).is_some_and(|next| self.is_home(next));
        let alphabet = (0..128u8).filter(stays).fold(0, |set, byte| set | ascii(byte));
        if alphabet.count_ones() < FEW_CHARACTERS {
            return alphabet & !UNSOUND;
        }
        let mut seen = Vec::new();
        let mut others = 0;
        for (lead, within) in Within::leads() {
            let inside = next(lead);
            for second in within.bytes() {
                if !inside.is_some_and(|inside| self.returns((inside, second), within, &mut seen)) {
                    others |= beyond(lead, second);
                }
            }
        }
        (alphabet | BEYOND_ASCII & !others) & !UNSOUND
    }

    /// Returns `true` if a byte within a character leads home, however the character ends. `seen` holds the
    /// places from which every byte does.
    fn returns(&self, (inside, byte): (u32, u8), within: Within, seen: &mut Vec<(u32, Within)>) -> bool {
        let Some(next) = self.terminal.next_state(inside, byte) else {
            return false;
        };
        let Some(within) = within.next() else {
            return self.is_home(next);
        };
        if seen.contains(&(next, within)) {
            return true;
        }
        let all = within
            .bytes()
            .all(|byte| self.returns((next, byte), within, seen));
        if all {
            seen.push((next, within));
        }
        all
    }
}

/// A state with loops on fewer ASCII characters than this has no large subtree to skip.
const FEW_CHARACTERS: u32 = 16;

#[cfg(test)]
mod tests {
    use regex_syntax::hir::Hir;

    use super::*;
    use crate::grammar::{Part, Regular};
    use crate::limits::Limits;

    /// Returns the characters that lead back to the state after `text`.
    fn loops(pattern: &str, text: &str) -> Alphabet {
        let hir: Hir = regex_syntax::parse(pattern).expect("the test's pattern is well formed");
        let parts = vec![Part::Match(hir.into())];
        let terminal =
            Terminal::new(&Regular::of(parts), &Limits::default()).expect("the test's pattern compiles");
        let state = text.bytes().fold(0, |state, byte| {
            terminal.next_state(state, byte).expect("the text belongs")
        });
        terminal.language_ids(false);
        of(&terminal, state)
    }

    #[test]
    fn a_search_passes_over_all_but_what_it_looks_for() {
        let all = loops("(?s).*f.*", "");
        assert_eq!(all & 1 << b'f', 0);
        assert_eq!(all & (BEYOND_ASCII | 1 << b'a'), BEYOND_ASCII | 1 << b'a');
        assert_ne!(loops("(?s).*f.*", "af") & 1 << b'f', 0, "found, it takes all");
    }

    #[test]
    fn one_character_beyond_ascii_that_leads_elsewhere_is_enough() {
        let others = |pattern| BEYOND_ASCII & !loops(pattern, "");
        assert_eq!(others("[^\u{10FFFF}]*"), beyond(0xF4, 0x8F));
        assert_eq!(others("[^é]*"), beyond(0xC3, 0xA9));
        assert_eq!(others(r"\S*").count_ones(), 4, "the groups with spaces");
        assert_eq!(others("(?s)[^é]*é.*x"), beyond(0xC3, 0xA9));
    }

    #[test]
    fn nothing_leads_back_where_characters_are_counted() {
        assert_eq!(loops("[a-z]{3}", ""), 0);
    }
}
