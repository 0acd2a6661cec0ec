//! A deterministic automaton over classes of letters.

use super::letters::Letters;

/// A complete deterministic automaton over classes of letters.
#[derive(Debug)]
pub struct Automaton {
    pub(super) letters: Letters,
    /// The state after each class, one row per state.
    pub(super) next: Vec<u32>,
    pub(super) accepting: Vec<bool>,
    /// `true` if a word can be completed from every state but the dead one.
    pub(super) live: bool,
}

impl Automaton {
    /// The state from which no word can be completed.
    pub const DEAD: u32 = 0;
    /// The state in which every word begins.
    pub const START: u32 = 1;

    /// Returns the classes of letters that label the edges.
    pub fn letters(&self) -> &Letters {
        &self.letters
    }

    #[inline]
    /// Returns the state after a letter of this class; [`DEAD`](Self::DEAD) if no word continues with it.
    pub fn next(&self, state: u32, class: u16) -> u32 {
        self.next[state as usize * self.letters.count() + class as usize]
    }

    /// Returns the states after each class of letters.
    pub(crate) fn row(&self, state: u32) -> &[u32] {
        let count = self.letters.count();
        &self.next[state as usize * count..][..count]
    }

    /// Returns `true` if the text that leads to this state is in the language.
    pub fn accepts(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// Returns `true` if a word can be completed from every state but the dead one.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Returns the states after each class of letters, one row per state.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.next
    }

    /// Returns the number of states.
    pub(crate) fn len(&self) -> u32 {
        self.accepting.len() as u32
    }

    /// Returns the bytes that the automaton takes.
    pub fn bytes(&self) -> usize {
        self.next.len() * 4 + self.accepting.len() + self.letters.bytes()
    }
}
