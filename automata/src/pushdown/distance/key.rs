//! How far it is to the end in a key that many texts go on in.
//!
//! A walk through the vocabulary asks for a hundred thousand texts of one key. Unless a text goes on like a
//! key that may not be written, all that makes a difference is where it stands in the language of keys.

use super::Distances;
use crate::language::Cursor;
use crate::language::plus;
use crate::pushdown::frame::{FrameId, Frames};

/// What is known of a key in progress, whatever comes next.
#[derive(Debug)]
pub(crate) struct KeyLengths {
    key: u32,
    /// What would complete it to keys that may not be written, sorted.
    taken: Vec<Vec<u8>>,
    /// The steps after it.
    behind: u64,
}

impl KeyLengths {
    /// `None` where the text makes a difference in other ways.
    pub(crate) fn new(frames: &Frames, shortest: &Distances, frame: FrameId) -> Option<KeyLengths> {
        let (series, rest, progress, _) = frames.key_parts(frame);
        let key = frames.nfa.series[series as usize].rest[rest as usize].key?;
        let mut taken = match shortest.achievable {
            true => frames.unwritable_behind(frame, &[], usize::MAX)?,
            false => Vec::new(),
        };
        taken.sort_unstable();
        let behind = shortest.behind_key(frames, series, rest, progress);
        Some(KeyLengths { key, taken, behind })
    }

    /// The fewest steps where the key has gone on with these bytes; `None` if it has gone on like one that is
    /// taken.
    pub(crate) fn free(&self, shortest: &Distances, cursor: Cursor, written: &[u8]) -> Option<u64> {
        let next = self.taken.partition_point(|taken| &taken[..] < written);
        let is_taken = self
            .taken
            .get(next)
            .is_some_and(|taken| taken.starts_with(written));
        (!is_taken).then(|| plus(shortest.of_cursor(self.key, cursor), self.behind))
    }
}
