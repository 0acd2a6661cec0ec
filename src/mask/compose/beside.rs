//! What a terminal allows beside what is allowed already.
//!
//! Where a string may match one of five patterns, each pattern is a terminal of its own, and each may begin with nearly
//! everything. The factor of the first takes a walk through half of the vocabulary, and what is missing behind it is
//! little; the others are asked for that alone.
//!
//! ```text
//!   ["│      .*maker.*      all tokens but 4,000       a walk
//!            .*admin.*      which of the 4,000?        4,000 texts
//! ```
//!
//! This is not remembered, so that a state that comes back often is worth a factor.

use super::super::notes::Notes;
use super::Fill;
use crate::machine::{ByteSet, ConfigId, Cursor, FrameId, Terminal};

/// One in so many tokens may be missing, for reading them to be faster than a walk.
const FEW: usize = 16;

/// As many may be missing in any vocabulary.
const ANY_FEW: usize = 64;

/// A walk takes as long as this is done so many times.
const OFTEN: u32 = 4;

/// If more tokens than this leave the terminal, they are walked together.
const MOST_BEYOND: usize = 64;

/// Where a token goes.
enum Goes {
    /// It stays within the terminal.
    Inside,
    /// It leaves where a word may have ended, with a byte that may come behind.
    Beyond,
    Nowhere,
}

impl Fill<'_> {
    /// Adds what a frame of a terminal allows of the few tokens that no reader before it allows, if nothing is known of its
    /// state; false if it has to be found as a whole. O(bytes of these tokens).
    pub(super) fn add_missing(
        &mut self,
        (frame, callers): (FrameId, ConfigId),
        (terminal, cursor): (&Terminal, Cursor),
    ) -> bool {
        let vocabulary = self.tables.vocabulary();
        let Some(begun) = &self.begun else { return false };
        if self.tables.knows(terminal, cursor) {
            return false;
        }
        let missing = self.tables.everything().without(begun);
        let is_seldom = |notes: &Notes| notes.come_beside(cursor.state) <= OFTEN;
        if missing.count() > (vocabulary.len() / FEW).max(ANY_FEW)
            || !terminal.notes::<Notes>().is_some_and(is_seldom)
        {
            return false;
        }
        let behind = self.walk.threads.readers_of(callers, 0);
        let mut bytes = self.walk.start(&behind);
        if self.walk.threads.take_lost() {
            bytes.insert_range(0, u8::MAX);
        }
        let mut inside = Vec::new();
        for token in missing.iter() {
            match goes(terminal, cursor.state, vocabulary.bytes(token), &bytes) {
                Goes::Inside => inside.push(token),
                Goes::Beyond => self.lost.push(token),
                Goes::Nowhere => {}
            }
        }
        if self.lost.len() > MOST_BEYOND {
            self.lost.clear();
            return false;
        }
        let Some(mut mask) = self.begun.take() else {
            return false;
        };
        mask.insert_all(&inside);
        self.find_lost(frame, callers, &mut mask);
        self.begun = Some(mask);
        true
    }
}

/// Where a text goes from a state whose bounds are not felt, with the bytes that may come behind the terminal.
fn goes(terminal: &Terminal, mut state: u32, text: &[u8], behind: &ByteSet) -> Goes {
    let mut goes = Goes::Nowhere;
    for (at, &byte) in text.iter().enumerate() {
        if at > 0 && terminal.is_accepting_state(state) && behind.contains(byte) {
            goes = Goes::Beyond;
        }
        match terminal.next_state(state, byte) {
            Some(next) => state = next,
            None => return goes,
        }
    }
    Goes::Inside
}
