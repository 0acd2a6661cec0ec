//! The progress of an object list: which items were written, how many, and with which keys.
//!
//! A list (`ObjectList` in the grammar) has no states of its own; its frame carries a [`Progress`]. From it,
//! the list may end or continue with one of the items after which it can still end.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::grammar::{Demand, ItemOrder, Meets};
use crate::language::Terminal;
use crate::pushdown::plan::nfa::ObjectListPlan;

/// The data that a list remembers about the items written so far. `done`, `used` and `met` are numbers of
/// interned values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Progress {
    /// In listed order, the position of the next property; in any order, the interned set of written
    /// properties.
    pub(crate) done: u32,
    /// The number of items written, clamped where more make no difference.
    pub(crate) count: u64,
    /// The interned list of keys that additional items have used.
    pub(crate) used: u32,
    /// The interned counts of items that met each demand, clamped like `count`.
    pub(crate) met: u32,
    /// `true` if an item was written, so that a separator must come first.
    pub(crate) started: bool,
    /// `true` if that separator has been written.
    pub(crate) separated: bool,
    /// `true` if one more key was written than `used` contains. Only looking ahead omits a key, since keys
    /// that are only tried must not be remembered; see [`Lookahead`](crate::pushdown::lookahead::Lookahead).
    pub(crate) doubted: bool,
}

impl Progress {
    /// The progress before the first item; value 0 of each kind is the empty one.
    pub(crate) const START: Progress = Progress {
        done: 0,
        count: 0,
        used: 0,
        met: 0,
        started: false,
        separated: false,
        doubted: false,
    };
}

/// A set of properties as bits.
pub(crate) type Bits = Box<[u64]>;

/// Returns `true` if a bit is set; bits beyond the end are not.
pub(crate) fn has_bit(bits: &[u64], index: usize) -> bool {
    bits.get(index / 64)
        .is_some_and(|word| word >> (index % 64) & 1 == 1)
}

/// Returns the set with one more property.
pub(crate) fn with_bit(bits: &[u64], index: usize) -> Bits {
    let mut bits = bits.to_vec();
    if bits.len() <= index / 64 {
        bits.resize(index / 64 + 1, 0);
    }
    bits[index / 64] |= 1 << (index % 64);
    bits.into()
}

/// The items that may still be written after a progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    /// The number of properties that must still be written.
    pub(crate) required: u64,
    /// The number of properties that may still be written.
    pub(crate) optional: u64,
    /// The number of further additional items that there can be; `None` if unbounded.
    pub(crate) additional: Option<u64>,
}

/// The maximum number of words of a key language that is counted; larger languages count as unbounded.
pub(crate) const MANY_WORDS: usize = 4096;

impl ObjectListPlan {
    /// Returns how many additional items there can be: unbounded, unless all keys come from small finite
    /// sets. Items of rules that are not `usable` supply nothing; a key that two items share counts once.
    pub(crate) fn additional_capacity(
        &self,
        terminals: &[Option<Arc<Terminal>>],
        usable: impl Fn(u32) -> bool,
    ) -> Option<u64> {
        let mut keys: FxHashSet<Vec<u8>> = FxHashSet::default();
        for additional in self
            .additional
            .iter()
            .filter(|additional| usable(additional.item))
        {
            if let Some(terminal) = &terminals[additional.key? as usize] {
                keys.extend(terminal.words(terminal.start(), MANY_WORDS)?);
            }
        }
        keys.retain(|key| !self.is_taken(key));
        Some(keys.len() as u64)
    }

    /// Returns the items that are left when the properties for which `written` holds can no longer be used.
    /// O(properties).
    pub(crate) fn outlook(&self, written: impl Fn(usize) -> bool, additional: Option<u64>) -> Outlook {
        let mut outlook = Outlook {
            required: 0,
            optional: 0,
            additional,
        };
        for (index, property) in self.properties.iter().enumerate() {
            match (written(index), property.required) {
                (true, _) => {}
                (false, true) => outlook.required += 1,
                (false, false) => outlook.optional += 1,
            }
        }
        outlook
    }

    /// Returns `true` if the object list may end now.
    pub(crate) fn may_end(&self, count: u64, outlook: &Outlook) -> bool {
        outlook.required == 0 && count >= self.min && self.max.is_none_or(|max| count <= max)
    }

    /// Returns `true` if the object list can still end.
    pub(crate) fn can_end(&self, count: u64, outlook: &Outlook) -> bool {
        let least = count.saturating_add(outlook.required);
        let most = outlook.additional.map_or(u64::MAX, |additional| {
            least.saturating_add(outlook.optional).saturating_add(additional)
        });
        self.max.is_none_or(|max| least <= max) && most >= self.min
    }

    /// Returns the count after one more item, clamped.
    pub(crate) fn count_on(&self, count: u64) -> u64 {
        let next = count + 1;
        if self.max.is_none() {
            next.min(self.min)
        } else {
            next
        }
    }

    /// Returns the properties that may come next such that the object list can still end.
    pub(crate) fn next_properties<'a>(
        &'a self,
        progress: Progress,
        written: impl Fn(usize) -> bool + 'a,
        outlook: Outlook,
    ) -> impl Iterator<Item = usize> + 'a {
        let (listed, leading) = (self.is_listed(), self.order == ItemOrder::Leading);
        let first = if listed { progress.done as usize } else { 0 };
        let count = progress.count + 1;
        let mut left = outlook;
        let mut blocked = false;
        (first..self.properties.len()).filter(move |&index| {
            if blocked || written(index) {
                return false;
            }
            let required = self.properties[index].required;
            let mut after = left;
            if required {
                after.required -= 1
            } else {
                after.optional -= 1
            }
            if listed {
                // A skipped property cannot come later; a required one cannot be skipped.
                left = after;
                blocked = required || leading;
            }
            self.can_end(count, &after)
        })
    }

    /// Returns `true` if properties are written in the order in which they are listed.
    pub(crate) fn is_listed(&self) -> bool {
        self.order != ItemOrder::Any
    }

    /// Returns `true` if additional items may come next; in listed order, only after the last required
    /// property.
    pub(crate) fn additional_is_open(&self, progress: Progress, outlook: &Outlook) -> bool {
        let after = Outlook {
            optional: if self.is_listed() { 0 } else { outlook.optional },
            additional: outlook.additional.map(|additional| additional.saturating_sub(1)),
            ..*outlook
        };
        self.properties_are_passed(progress, outlook.required)
            && outlook.additional != Some(0)
            && self.can_end(progress.count + 1, &after)
    }

    /// Returns `true` if the properties that must come before the additional items have been written.
    pub(crate) fn properties_are_passed(&self, progress: Progress, required: u64) -> bool {
        match self.order {
            ItemOrder::Any => true,
            ItemOrder::Listed => required == 0,
            ItemOrder::Leading => progress.done as usize >= self.properties.len(),
        }
    }

    /// Returns `true` if no additional item may have this key.
    pub(crate) fn is_taken(&self, key: &[u8]) -> bool {
        self.taken.contains(key)
    }

    /// Returns `true` if the object list has demands, so that a progress is judged by what can still be
    /// supplied.
    pub(crate) fn has_demands(&self) -> bool {
        !self.demands.is_empty()
    }

    /// Returns the counts of items that met each demand after one more item, clamped.
    pub(crate) fn meet(&self, met: &[u64], meets: Meets) -> Box<[u64]> {
        let count = |(bit, demand): (usize, &Demand)| {
            let met = met.get(bit).copied().unwrap_or(0) + u64::from(meets >> bit & 1);
            if demand.max.is_none() {
                met.min(demand.min)
            } else {
                met
            }
        };
        self.demands.iter().enumerate().map(count).collect()
    }

    /// Returns `true` if the counts are within the bounds of the demands.
    pub(crate) fn demands_are_met(&self, met: &[u64]) -> bool {
        let mut demands = self.demands.iter().enumerate();
        demands.all(|(bit, demand)| {
            let met = met.get(bit).copied().unwrap_or(0);
            met >= demand.min && demand.max.is_none_or(|max| met <= max)
        })
    }
}
