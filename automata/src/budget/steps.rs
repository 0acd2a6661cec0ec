//! Distances to the end in steps: the bytes and special tokens of a completion.

use super::place::Place;
use crate::language::ByteSet;
use crate::pushdown::Distances;

/// The distances of one grammar in steps.
#[derive(Debug)]
pub(super) struct Steps {
    /// Lower bounds on the distances.
    pub(super) at_least: Distances,
    /// Upper bounds on the distances, over bytes that are tokens; `None` if they equal `at_least`.
    achievable: Option<Distances>,
    /// `true` if every byte is a token.
    pub(super) writes_all: bool,
    /// The maximum number of steps that one token can make.
    pub(super) stride: u64,
}

impl Steps {
    /// Computes the distances of a grammar over a vocabulary. O(size of the automata of its rules and
    /// terminals).
    pub(super) fn new(place: Place<'_>) -> Steps {
        let vocabulary = place.vocabulary();
        let (mut all, mut usable) = (ByteSet::default(), ByteSet::default());
        all.insert_range(0, u8::MAX);
        for byte in (0..=u8::MAX).filter(|&byte| vocabulary.token_of_byte(byte).is_some()) {
            usable.insert_range(byte, byte);
        }
        let stacks = place.machine.stacks();
        // If the shortest completion is not known, one distance cannot serve as both bounds. The same holds
        // for differing keys, where the known achievable completion is not always the shortest, and for words
        // that some bytes must not follow.
        let writes_all = usable == all;
        let complete =
            writes_all && !stacks.has_validators() && !stacks.counts_keys() && !stacks.has_guards();
        let at_least = Distances::new(stacks, all, complete);
        let achievable = (!complete).then(|| Distances::new(stacks, usable, true));
        Steps {
            at_least,
            achievable,
            writes_all,
            stride: vocabulary.longest().max(1) as u64,
        }
    }

    /// Returns the upper bounds on the distances, over bytes that are tokens.
    pub(super) fn achievable(&self) -> &Distances {
        self.achievable.as_ref().unwrap_or(&self.at_least)
    }
}
