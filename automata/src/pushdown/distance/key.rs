//! The distance to the end in a key that is continued by many texts.
//!
//! A walk through the vocabulary asks about a hundred thousand continuations of one key. Unless a
//! continuation begins like a key that may not be written, only the cursor in the language of keys makes a
//! difference.

use super::Distances;
use crate::language::Cursor;
use crate::language::plus;
use crate::pushdown::frame::{FrameId, Frames};

/// The data about a key in progress that is independent of its continuation.
#[derive(Debug)]
pub(crate) struct KeyLengths {
    key: u32,
    /// The texts that would complete it to keys that may not be written, sorted.
    taken: Vec<Vec<u8>>,
    /// The number of steps after the key.
    after: u64,
}

impl KeyLengths {
    /// Returns `None` if the continuation makes a difference in other ways.
    pub(crate) fn new(frames: &Frames, shortest: &Distances, frame: FrameId) -> Option<KeyLengths> {
        let (object_list, additional, progress, _) = frames.key_parts(frame);
        let key = frames.nfa.object_lists[object_list as usize].additional[additional as usize].key?;
        let mut taken = match shortest.achievable {
            true => frames.unwritable_after(frame, &[], usize::MAX)?,
            false => Vec::new(),
        };
        taken.sort_unstable();
        let after = shortest.after_key(frames, object_list, additional, progress);
        Some(KeyLengths { key, taken, after })
    }

    /// Returns the fewest steps if the key has continued with these bytes; `None` if it has continued like a
    /// taken one.
    pub(crate) fn free(&self, shortest: &Distances, cursor: Cursor, written: &[u8]) -> Option<u64> {
        let next = self.taken.partition_point(|taken| &taken[..] < written);
        let is_taken = self
            .taken
            .get(next)
            .is_some_and(|taken| taken.starts_with(written));
        (!is_taken).then(|| plus(shortest.of_cursor(self.key, cursor), self.after))
    }
}
