//! What is ahead of heads: how far it is to the end, and whether that depends on text that they do not name.

use rustc_hash::FxHashMap;

use super::Lookahead;
use super::head::{At, Head, LOCAL};
use crate::language::{NEVER, plus};
use crate::pushdown::distance::{Distances, KeyLengths};
use crate::pushdown::frame::FrameId;
use crate::work::spend;

/// The lengths of the local sets of one walk, as far as they were asked for, and what is after the keys in which it began.
#[derive(Default)]
pub(crate) struct SetLengths {
    sets: Vec<u64>,
    keys: FxHashMap<FrameId, Option<KeyLengths>>,
}

/// The local sets of one walk, as far as it was asked whether what comes after them depends on text.
#[derive(Default)]
pub(crate) struct HangingSets(Vec<bool>);

impl Lookahead<'_> {
    /// The fewest steps that complete some of the heads after a path; `known` must be used with these sets only.
    pub(crate) fn shortest(
        &self,
        heads: &[Head],
        path: &[u8],
        shortest: &Distances,
        known: &mut SetLengths,
    ) -> u64 {
        // A set is older than those that name it.
        for index in known.sets.len()..self.local.sets.len() {
            let set = self.local.set(index as u32 | LOCAL);
            spend(set.len());
            // Nothing of a path is in the places that heads return to.
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

    /// Whether the futures of the heads depend on text that they do not name: on a word that a judge tells, or on that of
    /// a key. It does on every text of the keys of which `hangs` says so, and on one that goes on like a key that may
    /// not be written again. `known` must be used with these sets and this `hangs` only.
    pub(crate) fn hang_on_text(
        &self,
        heads: &[Head],
        hangs: impl Fn(FrameId) -> bool,
        known: &mut HangingSets,
    ) -> bool {
        let frames = &self.stacks.frames;
        let here = |head: &Head| match head.at {
            At::Judged { .. } => true,
            At::Key { frame, .. } => hangs(frame) || !frames.taken(frame, |_| true).is_empty(),
            At::AfterKey(frame) => hangs(frame),
            _ => false,
        };
        let below = |head: &Head, known: &[bool]| {
            head.callers & LOCAL != 0 && known[(head.callers & !LOCAL) as usize]
        };
        // A set is older than those that name it.
        for index in known.0.len()..self.local.sets.len() {
            let set = self.local.set(index as u32 | LOCAL);
            spend(set.len());
            let hanging = set.iter().any(|head| here(head) || below(head, &known.0));
            known.0.push(hanging);
        }
        heads.iter().any(|head| here(head) || below(head, &known.0))
    }

    /// The heads with what makes no difference to their futures left out, for heads that do not
    /// [hang on text](Self::hang_on_text): where a key began.
    pub(crate) fn futures(&self, heads: &[Head]) -> Vec<Head> {
        let without_start = |head: &Head| match head.at {
            At::Key { frame, cursor, .. } => {
                let start = 0;
                let at = At::Key { frame, cursor, start };
                Head { at, ..*head }
            }
            _ => *head,
        };
        heads.iter().map(without_start).collect()
    }
}
