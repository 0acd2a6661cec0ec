//! The register of a series: which items were written, how many, and with which keys.
//!
//! A series has no states of its own; its frame carries a [`Register`]. From a register the series may end, or go on
//! with one of the items that leave a register from which it can still end.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::nfa::SeriesPlan;
use super::terminal::Terminal;
use crate::grammar::{Demand, Keys, Meets, SeriesOrder};

/// What a series remembers. `done`, `used` and `met` are numbers of interned values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Register {
    /// In listed order the position of the next member; in any order the interned set of members written.
    pub(super) done: u32,
    /// How many items were written, clamped where more make no difference.
    pub(super) count: u64,
    /// The interned set of keys written by the rest.
    pub(super) used: u32,
    /// The interned numbers of items that met each demand, clamped like `count`.
    pub(super) met: u32,
    /// Whether a key has come again, where one must; then none is remembered any more.
    pub(super) repeated: bool,
    /// Whether an item was written, so that a separator must come first.
    pub(super) started: bool,
    /// Whether that separator has been written.
    pub(super) separated: bool,
    /// Whether one more key was written than `used` has. Only looking ahead leaves out a key, since what is looked at
    /// must not be remembered; see [`Threads`](super::thread::Threads).
    pub(super) doubted: bool,
}

impl Register {
    /// The register before the first item; set 0 of either kind is the empty one.
    pub(super) const START: Register = Register {
        done: 0,
        count: 0,
        used: 0,
        met: 0,
        repeated: false,
        started: false,
        separated: false,
        doubted: false,
    };
}

/// A set of members as bits.
pub(super) type Bits = Box<[u64]>;

/// Whether a bit is set; bits beyond the end are not.
pub(super) fn has_bit(bits: &[u64], index: usize) -> bool {
    bits.get(index / 64)
        .is_some_and(|word| word >> (index % 64) & 1 == 1)
}

/// The set with one more member.
pub(super) fn with_bit(bits: &[u64], index: usize) -> Bits {
    let mut bits = bits.to_vec();
    if bits.len() <= index / 64 {
        bits.resize(index / 64 + 1, 0);
    }
    bits[index / 64] |= 1 << (index % 64);
    bits.into()
}

/// What is left to be written from a register on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    /// Members that must still be written.
    pub(super) required: u64,
    /// Members that may still be written.
    pub(super) optional: u64,
    /// How many more items the rest can supply; `None` is no bound.
    pub(super) rest: Option<u64>,
}

/// Key languages with more words than this count as unbounded when items are counted.
pub(super) const MANY_WORDS: usize = 4096;

impl SeriesPlan {
    /// How many items the rest can supply: no bound, unless all keys come from small finite sets. Items of rules
    /// that are not `usable` supply nothing; a key that two items share counts once.
    pub(super) fn rest_capacity(
        &self,
        terminals: &[Option<Arc<Terminal>>],
        usable: impl Fn(u32) -> bool,
    ) -> Option<u64> {
        if self.keys == Keys::Repeat {
            return self.rest.is_empty().then_some(0);
        }
        let mut keys: FxHashSet<Vec<u8>> = FxHashSet::default();
        for rest in self.rest.iter().filter(|rest| usable(rest.item)) {
            if let Some(terminal) = &terminals[rest.key? as usize] {
                keys.extend(terminal.words(terminal.start(), MANY_WORDS)?);
            }
        }
        keys.retain(|key| !self.is_taken(key));
        Some(keys.len() as u64)
    }

    /// What is left when the members for which `written` holds can no longer be used. O(members).
    pub(super) fn outlook(&self, written: impl Fn(usize) -> bool, rest: Option<u64>) -> Outlook {
        let mut outlook = Outlook {
            required: 0,
            optional: 0,
            rest,
        };
        for (index, member) in self.members.iter().enumerate() {
            match (written(index), member.required) {
                (true, _) => {}
                (false, true) => outlook.required += 1,
                (false, false) => outlook.optional += 1,
            }
        }
        outlook
    }

    /// Whether the series can end right here.
    pub(super) fn may_end(&self, count: u64, outlook: &Outlook) -> bool {
        outlook.required == 0 && count >= self.min && self.max.is_none_or(|max| count <= max)
    }

    /// Whether the series can still end.
    pub(super) fn can_end(&self, count: u64, outlook: &Outlook) -> bool {
        let least = count.saturating_add(outlook.required);
        let most = outlook.rest.map_or(u64::MAX, |rest| {
            least.saturating_add(outlook.optional).saturating_add(rest)
        });
        self.max.is_none_or(|max| least <= max) && most >= self.min
    }

    /// The count after one more item, clamped.
    pub(super) fn count_on(&self, count: u64) -> u64 {
        let next = count + 1;
        if self.max.is_none() {
            next.min(self.min)
        } else {
            next
        }
    }

    /// The members that may come next with what is left after each, so that the series can still end.
    pub(super) fn next_members<'a>(
        &'a self,
        register: Register,
        written: impl Fn(usize) -> bool + 'a,
        outlook: Outlook,
    ) -> impl Iterator<Item = usize> + 'a {
        let (listed, leading) = (self.is_listed(), self.order == SeriesOrder::Leading);
        let first = if listed { register.done as usize } else { 0 };
        let count = register.count + 1;
        let mut left = outlook;
        let mut blocked = false;
        (first..self.members.len()).filter(move |&index| {
            if blocked || written(index) {
                return false;
            }
            let required = self.members[index].required;
            let mut after = left;
            if required {
                after.required -= 1
            } else {
                after.optional -= 1
            }
            if listed {
                // A member that is passed over cannot come back; a required one cannot be passed over.
                left = after;
                blocked = required || leading;
            }
            self.can_end(count, &after)
        })
    }

    /// Whether members are written in the order in which they are listed.
    pub(super) fn is_listed(&self) -> bool {
        self.order != SeriesOrder::Any
    }

    /// Whether items of the rest may come next: in order only behind the last member that must be there.
    pub(super) fn rest_is_open(&self, register: Register, outlook: &Outlook) -> bool {
        let after = Outlook {
            optional: if self.is_listed() { 0 } else { outlook.optional },
            rest: outlook.rest.map(|rest| rest.saturating_sub(1)),
            ..*outlook
        };
        self.members_are_passed(register, outlook.required)
            && outlook.rest != Some(0)
            && self.can_end(register.count + 1, &after)
    }

    /// Whether the members that must come before the rest have come.
    pub(super) fn members_are_passed(&self, register: Register, required: u64) -> bool {
        match self.order {
            SeriesOrder::Any => true,
            SeriesOrder::Listed => required == 0,
            SeriesOrder::Leading => register.done as usize >= self.members.len(),
        }
    }

    /// Whether no item of the rest may have a key.
    pub(super) fn is_taken(&self, key: &[u8]) -> bool {
        self.taken.contains(key)
    }

    /// Whether demands have to be met, so that a register is judged by what it can still supply.
    pub(super) fn has_demands(&self) -> bool {
        !self.demands.is_empty()
    }

    /// The counts of items that met each demand after one more, clamped.
    pub(super) fn meet(&self, met: &[u64], meets: Meets) -> Box<[u64]> {
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

    /// Whether the counts lie within the bounds of the demands.
    pub(super) fn demands_are_met(&self, met: &[u64]) -> bool {
        let mut demands = self.demands.iter().enumerate();
        demands.all(|(bit, demand)| {
            let met = met.get(bit).copied().unwrap_or(0);
            met >= demand.min && demand.max.is_none_or(|max| met <= max)
        })
    }
}
