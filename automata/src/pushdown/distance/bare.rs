//! Configurations that remember no more than their shortest completions need.
//!
//! The properties and keys that an object has so far affect what else may be written in it. The shortest
//! completion writes the missing required properties, and nothing else:
//!
//! ```text
//!   {"a":1,"x":0,"note":"…",          ┐
//!   {"y":{},"a":7,                    ├─ bare: {"a":…,       ,"b":0} is the shortest completion of all three
//!   {"a":[1,2],                       ┘
//! ```
//!
//! So texts with other optional properties and other keys continue in the same bare configuration, and one
//! completion is spelled for all of them.

use crate::grammar::ItemOrder;
use crate::pushdown::frame::{FrameId, FrameKey, Frames};
use crate::pushdown::object::progress::{Bits, Progress, has_bit};
use crate::pushdown::stack::{ConfigId, END, FINISHED, Stacks};

impl Stacks {
    /// Returns a configuration with the same shortest completions, in which open objects remember only the
    /// required properties that were written. `known` returns those that were computed before; `found` is
    /// called for all that are computed on the way.
    pub(crate) fn bare(
        &self,
        config: ConfigId,
        known: impl Fn(ConfigId) -> Option<ConfigId>,
        mut found: impl FnMut(ConfigId, ConfigId),
    ) -> ConfigId {
        let known = |config| match config {
            END | FINISHED => Some(config),
            _ => known(config),
        };
        if let Some(known) = known(config) {
            return known;
        }
        let all = self.fold_callers(config, known, |pairs, below| {
            let pairs = pairs
                .iter()
                .map(|&(frame, callers)| (self.frames.bare(frame), below(callers)));
            self.intern(pairs.collect::<Vec<_>>())
        });
        all.iter().for_each(|(&config, &bare)| found(config, bare));
        all[&config]
    }
}

impl Frames {
    fn bare(&self, id: FrameId) -> FrameId {
        match self.get(id).key {
            FrameKey::ObjectList(object_list, progress) if self.forgets(object_list, progress) => {
                let bare = self.bare_progress(object_list, progress);
                self.intern(FrameKey::ObjectList(object_list, bare))
            }
            _ => id,
        }
    }

    fn bare_progress(&self, object_list: u32, progress: Progress) -> Progress {
        let plan = &self.nfa.object_lists[object_list as usize];
        let required = || (0..plan.properties.len()).filter(|&index| plan.properties[index].required);
        let missing = required().find(|&index| !self.is_written(object_list, progress, index));
        // After a separator some item follows, and if none is required, it depends on the items written
        // before.
        if progress.separated && missing.is_none() {
            return progress;
        }
        let done = match plan.order {
            ItemOrder::Leading => return progress,
            ItemOrder::Listed => missing.unwrap_or(plan.properties.len()) as u32,
            ItemOrder::Any => {
                let written = self.written.get(progress.done);
                let mut bits: Vec<u64> = vec![0; written.len()];
                for index in required().filter(|&index| has_bit(written, index)) {
                    bits[index / 64] |= 1 << (index % 64);
                }
                // Sets of written properties are stored without trailing zero words.
                while bits.last() == Some(&0) {
                    bits.pop();
                }
                self.written.intern(Bits::from(bits))
            }
        };
        Progress {
            done,
            used: Progress::START.used,
            ..progress
        }
    }
}
