//! Computes the distance from heads to the end.

use rustc_hash::FxHashMap;

use super::Lookahead;
use super::head::{At, Head, LOCAL};
use crate::language::{NEVER, plus};
use crate::pushdown::distance::{Distances, KeyLengths};
use crate::pushdown::frame::FrameId;
use crate::work::spend;

/// The lengths of the local sets of one walk, computed on demand, and the lengths for the keys in which the
/// walk began.
#[derive(Default)]
pub(crate) struct SetLengths {
    sets: Vec<u64>,
    keys: FxHashMap<FrameId, Option<KeyLengths>>,
}

impl Lookahead<'_> {
    /// Returns the fewest steps that complete any of the heads after a path. `known` must be used with the
    /// local sets of this lookahead only.
    pub(crate) fn shortest(
        &self,
        heads: &[Head],
        path: &[u8],
        shortest: &Distances,
        known: &mut SetLengths,
    ) -> u64 {
        // A set is older than the sets that refer to it.
        for index in known.sets.len()..self.local.sets.len() {
            let set = self.local.set(index as u32 | LOCAL);
            spend(set.len());
            // The places that heads return to contain no part of a path.
            let length = self.shortest_of(set, &[], shortest, known);
            known.sets.push(length);
        }
        self.shortest_of(heads, path, shortest, known)
    }

    fn shortest_of(&self, heads: &[Head], path: &[u8], shortest: &Distances, known: &mut SetLengths) -> u64 {
        let frames = &self.stacks.frames;
        let lengths = heads.iter().map(|head| {
            let callers = match head.callers {
                local if local & LOCAL != 0 => known.sets[(local & !LOCAL) as usize],
                config => shortest.of(self.stacks, config),
            };
            let free = match head.at {
                At::Key { frame, cursor, start } => {
                    let find = || KeyLengths::new(frames, shortest, frame);
                    let key = known.keys.entry(frame).or_insert_with(find);
                    let key = key.as_ref().zip(path.get(start as usize..));
                    key.and_then(|(key, written)| key.free(shortest, cursor, written))
                }
                _ => None,
            };
            plus(
                free.unwrap_or_else(|| shortest.of_place(frames, head.at, path)),
                callers,
            )
        });
        lengths.min().unwrap_or(NEVER)
    }
}
