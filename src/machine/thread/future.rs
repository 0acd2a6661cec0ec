//! What is ahead of threads: how far it is to the end, and whether that depends on text that they do not name.

use rustc_hash::FxHashMap;

use super::{At, LOCAL, Thread, Threads};
use crate::machine::frame::FrameId;
use crate::machine::shortest::{KeyLengths, NEVER, Shortest, plus};
use crate::work::spend;

/// The lengths of the local sets of one walk, as far as they were asked for, and what is behind the keys in which it began.
#[derive(Default)]
pub(crate) struct SetLengths {
    sets: Vec<u64>,
    keys: FxHashMap<FrameId, Option<KeyLengths>>,
}

/// The local sets of one walk, as far as it was asked whether what comes behind them hangs on text.
#[derive(Default)]
pub(crate) struct HangingSets(Vec<bool>);

impl Threads<'_> {
    /// The fewest steps that complete some of the threads behind a path; `known` must be used with these sets only.
    pub(crate) fn shortest(
        &self,
        threads: &[Thread],
        path: &[u8],
        shortest: &Shortest,
        known: &mut SetLengths,
    ) -> u64 {
        // A set is older than those that name it.
        for index in known.sets.len()..self.local.sets.len() {
            let set = self.local.set(index as u32 | LOCAL);
            spend(set.len());
            // Nothing of a path is in the places that threads return to.
            let length = self.shortest_of(set, &[], shortest, known);
            known.sets.push(length);
        }
        self.shortest_of(threads, path, shortest, known)
    }

    fn shortest_of(
        &self,
        threads: &[Thread],
        path: &[u8],
        shortest: &Shortest,
        known: &mut SetLengths,
    ) -> u64 {
        let frames = &self.stacks.frames;
        let lengths = threads.iter().map(|thread| {
            let callers = match thread.callers {
                local if local & LOCAL != 0 => known.sets[(local & !LOCAL) as usize],
                config => shortest.of(self.stacks, config),
            };
            let free = match thread.at {
                At::Key { frame, cursor, start } => {
                    let find = || KeyLengths::new(frames, shortest, frame);
                    let key = known.keys.entry(frame).or_insert_with(find);
                    let key = key.as_ref().zip(path.get(start as usize..));
                    key.and_then(|(key, written)| key.free(shortest, cursor, written))
                }
                _ => None,
            };
            plus(
                free.unwrap_or_else(|| shortest.of_place(frames, thread.at, path)),
                callers,
            )
        });
        lengths.min().unwrap_or(NEVER)
    }

    /// Whether the futures of the threads hang on text that they do not name: on a word that a judge tells, or on that of
    /// a key. It does on every text of the keys of which `hangs` says so, and on one that goes on like a key that may
    /// not be written again. `known` must be used with these sets and this `hangs` only.
    pub(crate) fn hang_on_text(
        &self,
        threads: &[Thread],
        hangs: impl Fn(FrameId) -> bool,
        known: &mut HangingSets,
    ) -> bool {
        let frames = &self.stacks.frames;
        let hangs = |frame| frames.may_come_again(frame) || hangs(frame);
        let here = |thread: &Thread| match thread.at {
            At::Judged { .. } => true,
            At::Key { frame, .. } => hangs(frame) || !frames.taken(frame, |_| true).is_empty(),
            At::Item(frame) => hangs(frame),
            _ => false,
        };
        let below = |thread: &Thread, known: &[bool]| {
            thread.callers & LOCAL != 0 && known[(thread.callers & !LOCAL) as usize]
        };
        // A set is older than those that name it.
        for index in known.0.len()..self.local.sets.len() {
            let set = self.local.set(index as u32 | LOCAL);
            spend(set.len());
            let hanging = set.iter().any(|thread| here(thread) || below(thread, &known.0));
            known.0.push(hanging);
        }
        threads
            .iter()
            .any(|thread| here(thread) || below(thread, &known.0))
    }

    /// The threads with what makes no difference to their futures left out, for threads that do not
    /// [hang on text](Self::hang_on_text): where a key began.
    pub(crate) fn futures(&self, threads: &[Thread]) -> Vec<Thread> {
        let without_start = |thread: &Thread| match thread.at {
            At::Key { frame, cursor, .. } => {
                let start = 0;
                let at = At::Key { frame, cursor, start };
                Thread { at, ..*thread }
            }
            _ => *thread,
        };
        threads.iter().map(without_start).collect()
    }
}
