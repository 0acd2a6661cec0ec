//! How many characters must be inserted at least, wherever in the text and the grammar a search stands.
//!
//! A text that is complete after `D` more characters, of which the given one has `R`, needs `D - R`
//! insertions: deletions make it no longer, and substitutions leave its length. `D` comes from the distances
//! of the grammar, which count bytes. They count characters as well where every character may be written in
//! ASCII; elsewhere a character may take four bytes.

use lexiform_automata::language::{ByteSet, NEVER};
use lexiform_automata::pushdown::{ConfigId, Distances, Machine};

/// The bytes of the longest character.
const LONGEST_CHARACTER: u64 = 4;

/// A lower bound for the insertions to the end.
pub(super) struct Remaining {
    distances: Distances,
    bytes_per_character: u64,
}

impl Remaining {
    /// For a grammar; `is_ascii` says whether a text that completes one is never longer in ASCII, in
    /// characters.
    pub(super) fn new(machine: &Machine, is_ascii: bool) -> Remaining {
        let mut all = ByteSet::default();
        all.insert_range(0, u8::MAX);
        Remaining {
            distances: Distances::new(machine.stacks(), all, false),
            bytes_per_character: if is_ascii { 1 } else { LONGEST_CHARACTER },
        }
    }

    /// The fewest bytes after which the text may end; [`NEVER`] if it never may.
    pub(super) fn bytes(&self, machine: &Machine, config: ConfigId) -> u64 {
        self.distances.of(machine.stacks(), config)
    }

    /// The fewest insertions after which the text may end, with so many characters of it left; `None` if it
    /// never may.
    pub(super) fn insertions(&self, machine: &Machine, config: ConfigId, left: usize) -> Option<u64> {
        let bytes = self.bytes(machine, config);
        let characters = bytes.div_ceil(self.bytes_per_character);
        (bytes != NEVER).then(|| characters.saturating_sub(left as u64))
    }
}
