//! Regular expressions as deterministic automata, over characters where they can be and over bytes where they must.
//!
//! ```text
//!   Hir ─► nfa       places, and the letters that lead on
//!       ─► letters   letters that no place tells apart are one class
//!       ─► subset    determinised: a table of states by classes
//!          spelling  … and each character written out as the bytes of its UTF-8
//! ```
//!
//! A class such as `\S` is one edge over characters and some twenty over bytes, and every copy of it in `(\S+\s){0,99}`
//! has its own. So sets of places are built, multiplied and searched over characters, and only what is left at the end
//! is spelled in bytes, with beginnings of characters that lead to the same places shared. Expressions that speak of
//! bytes which are no text, or of more than 256 classes of characters, are treated over bytes throughout.
//!
//! What is not done here: nothing looks around, and nothing is minimised.

mod letters;
mod nfa;
mod spelling;
mod subset;
#[cfg(test)]
mod tests;

use regex_syntax::hir::Hir;

pub(crate) use letters::{Alphabet, Letters};
pub(crate) use spelling::spell;

use crate::limits::Cancel;

/// Why an expression could not become an automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It looks around.
    Look,
    /// It cannot be had over characters: it speaks of bytes that are no text, or tells too many characters apart.
    NotText,
    /// It needs more memory, or more work, than it may take, or nobody wants it any more.
    Limit,
}

/// What an automaton may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    /// The bytes that it may take while it is built, and with them the work.
    pub(crate) bytes: usize,
    /// Whether anybody still wants it.
    pub(crate) cancel: &'a Cancel,
}

/// A complete deterministic automaton over classes of letters.
#[derive(Debug)]
pub(crate) struct Automaton {
    letters: Letters,
    /// The state behind each class, a row for each state.
    next: Vec<u32>,
    accepting: Vec<bool>,
    /// Whether a word can be completed from every state but the dead one.
    live: bool,
}

impl Automaton {
    /// From here no word can be completed, whatever follows.
    pub(crate) const DEAD: u32 = 0;
    /// Where every word begins.
    pub(crate) const START: u32 = 1;

    /// The automaton of an expression that matches words from edge to edge.
    pub(crate) fn new(hir: &Hir, alphabet: Alphabet, room: Room<'_>) -> Result<Automaton, Failure> {
        let nfa = nfa::Nfa::new(hir, alphabet, room.bytes)?;
        subset::determinise(&nfa, alphabet, room)
    }

    pub(crate) fn letters(&self) -> &Letters {
        &self.letters
    }

    #[inline]
    pub(crate) fn next(&self, state: u32, class: u16) -> u32 {
        self.next[state as usize * self.letters.count() + class as usize]
    }

    /// The states behind each class of letters.
    pub(crate) fn row(&self, state: u32) -> &[u32] {
        let count = self.letters.count();
        &self.next[state as usize * count..][..count]
    }

    pub(crate) fn accepts(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// Whether a word can be completed from every state but the dead one.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// The states behind each class of letters, a row for each state.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.next
    }

    /// How many states there are.
    pub(crate) fn len(&self) -> u32 {
        self.accepting.len() as u32
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.next.len() * 4 + self.accepting.len() + self.letters.bytes()
    }
}
