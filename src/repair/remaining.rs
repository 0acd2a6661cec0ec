//! A lower bound on the characters that must still be inserted, for each position of a search in the text and
//! the grammar.
//!
//! A text that is complete after `D` more characters, of which the given one has `R`, needs at least `D - R`
//! insertions: deletions make it no longer, and substitutions keep its length. `D` is derived from the
//! distances of the grammar, which count bytes. They also count characters if every character may be written
//! in ASCII; otherwise a character may take four bytes.

use lexiform_automata::language::{ByteSet, NEVER};
use lexiform_automata::pushdown::{ConfigId, Distances, Machine};

/// The number of bytes of the longest character.
const LONGEST_CHARACTER: u64 = 4;

/// A lower bound on the insertions to the end.
pub(super) struct Remaining {
    distances: Distances,
    bytes_per_character: u64,
}

impl Remaining {
    /// Returns the bound for a grammar; `is_ascii` is `true` if the shortest completion of a text is never
    /// longer in ASCII, measured in characters.
    pub(super) fn new(machine: &Machine, is_ascii: bool) -> Remaining {
        let mut all = ByteSet::default();
        all.insert_range(0, u8::MAX);
        Remaining {
            distances: Distances::new(machine.stacks(), all, false),
            bytes_per_character: if is_ascii { 1 } else { LONGEST_CHARACTER },
        }
    }

    /// Returns the fewest bytes after which the text may end, or [`NEVER`] if it never may.
    pub(super) fn bytes(&self, machine: &Machine, config: ConfigId) -> u64 {
        self.distances.of(machine.stacks(), config)
    }

    /// Returns the fewest insertions after which the text may end, with `left` characters of it left, or
    /// `None` if it never may.
    pub(super) fn insertions(&self, machine: &Machine, config: ConfigId, left: usize) -> Option<u64> {
        let bytes = self.bytes(machine, config);
        let characters = bytes.div_ceil(self.bytes_per_character);
        (bytes != NEVER).then(|| characters.saturating_sub(left as u64))
    }
}
