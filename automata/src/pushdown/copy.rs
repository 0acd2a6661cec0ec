//! Copies configurations to separate machines.
//!
//! Steps on real text are cached, which is wrong for text that is only tried: tokens that depend on a key
//! which they write themselves, or a search for the shortest completion. Such steps are taken on a copy of
//! the configuration, in a machine with empty tables that is dropped after the query. A sequence moves to
//! another machine of its grammar in the same way.

use rustc_hash::{FxHashMap, FxHashSet};

use super::frame::{FrameId, FrameKey, Frames};
use super::stack::{ConfigId, END, FINISHED, Stacks};
use crate::grammar::ItemOrder;
use crate::pushdown::intern::interner::NIL;
use crate::pushdown::object::next_key::NextKeyState;
use crate::pushdown::object::progress::Progress;
use crate::work::spend;

impl Stacks {
    /// Returns an empty machine of the same grammar and, in it, the configuration of one frame with its
    /// callers. O(depth of the callers · size of the data that they remember).
    pub(crate) fn apart(&self, frame: FrameId, callers: ConfigId) -> (Stacks, ConfigId) {
        let (fresh, copies) = self.copy_below(callers);
        let frame = fresh.frames.copy_frame(&self.frames, frame);
        let config = fresh.intern(vec![(frame, copies[&callers])]);
        (fresh, config)
    }

    /// Returns an empty machine of the same grammar with a copy of a whole configuration.
    pub(crate) fn apart_whole(&self, config: ConfigId) -> (Stacks, ConfigId) {
        let (fresh, copies) = self.copy_below(config);
        (fresh, copies[&config])
    }

    /// Copies a configuration of another machine of the same grammar to this one.
    pub(crate) fn adopt(&self, other: &Stacks, config: ConfigId) -> ConfigId {
        self.take_below(other, config)[&config]
    }

    /// Returns an empty machine with a copy of a configuration and of all that it may return to.
    fn copy_below(&self, callers: ConfigId) -> (Stacks, FxHashMap<ConfigId, ConfigId>) {
        let fresh = Stacks::new(self.frames.fresh(), self.most_bytes);
        let copies = fresh.take_below(self, callers);
        (fresh, copies)
    }

    /// Copies a configuration of another machine and all that it may return to; returns a map from the
    /// originals to the copies.
    fn take_below(&self, other: &Stacks, callers: ConfigId) -> FxHashMap<ConfigId, ConfigId> {
        let mut copies = FxHashMap::from_iter([(END, END), (FINISHED, FINISHED)]);
        for config in other.below(callers) {
            let pairs = other.pairs(config).iter();
            let pairs = pairs
                .map(|&(frame, callers)| (self.frames.copy_frame(&other.frames, frame), copies[&callers]));
            let copy = self.intern(pairs.collect::<Vec<_>>());
            copies.insert(config, copy);
        }
        copies
    }

    /// Returns a configuration and all that it may return to, each after its own callers: a configuration has
    /// a larger number than its callers.
    fn below(&self, config: ConfigId) -> Vec<ConfigId> {
        let mut found = FxHashSet::default();
        let mut open = vec![config];
        while let Some(config) = open.pop() {
            spend(1);
            if config != END && config != FINISHED && found.insert(config) {
                open.extend(self.pairs(config).iter().map(|&(_, callers)| callers));
            }
        }
        let mut found: Vec<ConfigId> = found.into_iter().collect();
        found.sort_unstable();
        found
    }
}

impl Frames {
    fn copy_frame(&self, from: &Frames, id: FrameId) -> FrameId {
        let key = match from.get(id).key.clone() {
            FrameKey::ObjectList(object_list, progress) => {
                FrameKey::ObjectList(object_list, self.copy_progress(from, object_list, progress))
            }
            FrameKey::NextKey(at) => FrameKey::NextKey(NextKeyState {
                progress: self.copy_progress(from, at.object_list, at.progress),
                ..at
            }),
            FrameKey::Key {
                object_list,
                additional,
                progress,
                cursor,
                text,
            } => FrameKey::Key {
                object_list,
                additional,
                progress: self.copy_progress(from, object_list, progress),
                cursor,
                text: self.copy_text(from, text),
            },
            FrameKey::Validated {
                validated,
                cursor,
                text,
            } => FrameKey::Validated {
                validated,
                cursor,
                text: self.copy_text(from, text),
            },
            FrameKey::Guarded(frame, guard) => FrameKey::Guarded(self.copy_frame(from, frame), guard),
            other => other,
        };
        self.intern(key)
    }

    fn copy_progress(&self, from: &Frames, object_list: u32, progress: Progress) -> Progress {
        let keys = from.keys.to_vec(progress.used).into_iter();
        Progress {
            done: match self.nfa.object_lists[object_list as usize].order {
                ItemOrder::Any => self.written.intern(from.written.get(progress.done).clone()),
                ItemOrder::Listed | ItemOrder::Leading => progress.done,
            },
            used: keys.fold(NIL, |used, text| self.keys.push(used, self.copy_text(from, text))),
            met: self.met.intern(from.met.get(progress.met).clone()),
            ..progress
        }
    }

    fn copy_text(&self, from: &Frames, text: u32) -> u32 {
        let bytes = from.texts.to_vec(text).into_iter();
        bytes.fold(NIL, |text, byte| self.texts.push(text, byte))
    }
}
