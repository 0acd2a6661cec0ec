//! A deterministic automaton over classes of letters.

use super::letters::Letters;

/// A complete deterministic automaton over classes of letters.
#[derive(Debug)]
pub struct Automaton {
    pub(super) letters: Letters,
    /// The state after each class, a row for each state.
    pub(super) next: Vec<u32>,
    pub(super) accepting: Vec<bool>,
    /// Whether a word can be completed from every state but the dead one.
    pub(super) live: bool,
}

impl Automaton {
    /// From here no word can be completed, whatever follows.
    pub const DEAD: u32 = 0;
    /// Where every word begins.
    pub const START: u32 = 1;

    /// The classes of characters that edges are for.
    pub fn letters(&self) -> &Letters {
        &self.letters
    }

    #[inline]
    /// The state after a character of this class; [`DEAD`](Self::DEAD) if nothing goes on with it.
    pub fn next(&self, state: u32, class: u16) -> u32 {
        self.next[state as usize * self.letters.count() + class as usize]
    }

    /// The states after each class of letters.
    pub(crate) fn row(&self, state: u32) -> &[u32] {
        let count = self.letters.count();
        &self.next[state as usize * count..][..count]
    }

    /// Whether the text that leads to this state is in the language.
    pub fn accepts(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// Whether a word can be completed from every state but the dead one.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// The states after each class of letters, a row for each state.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.next
    }

    /// How many states there are.
    pub(crate) fn len(&self) -> u32 {
        self.accepting.len() as u32
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        self.next.len() * 4 + self.accepting.len() + self.letters.bytes()
    }
}
