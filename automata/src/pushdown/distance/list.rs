//! Computes the fewest steps that complete an object list from its progress.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Distances;
use crate::grammar::{ItemOrder, Meets};
use crate::language::Terminal;
use crate::language::{NEVER, plus};
use crate::pushdown::frame::{Call, FrameKey, Frames};
use crate::pushdown::object::next_key::NextKeyState;
use crate::pushdown::object::progress::Progress;
use crate::pushdown::plan::nfa::{Callee, ObjectListPlan, PropertyPlan};
use crate::work::spend;

/// The maximum number of progresses that are examined for an object list with demands.
const REGISTERS: usize = 512;

/// The maximum number of additional items whose steps are computed separately; those after them take as many
/// as the last.
const ADDITIONAL_ITEMS: usize = 32;

/// The items that are left to write.
pub(crate) struct Left {
    /// The steps of each property that can still be written, in order, and whether it must be.
    pub(crate) properties: Vec<(u64, bool)>,
    /// The steps that each further additional item adds; the last entry applies to all that follow.
    pub(crate) additional: Vec<u64>,
    pub(crate) separator: u64,
}

impl Left {
    /// Returns the fewest steps from a progress on.
    pub(crate) fn shortest(&self, plan: &ObjectListPlan, progress: Progress) -> u64 {
        let items = self.items(plan, progress);
        if items == 0 {
            return 0;
        }
        let separators = items - 1 + u64::from(progress.started && !progress.separated);
        let separators = match separators {
            0 => 0,
            n => self.separator.saturating_mul(n),
        };
        let items = usize::try_from(items).unwrap_or(usize::MAX);
        plus(self.fill(plan, items), separators)
    }

    /// Returns how many items must still be written; after a separator at least one.
    fn items(&self, plan: &ObjectListPlan, progress: Progress) -> u64 {
        let missing = plan
            .min
            .saturating_sub(progress.count)
            .max(u64::from(progress.separated));
        let required = match plan.order {
            // No property can be skipped.
            ItemOrder::Leading => self
                .properties
                .iter()
                .rposition(|property| property.1)
                .map_or(0, |last| last + 1),
            _ => self.properties.iter().filter(|property| property.1).count(),
        };
        missing.max(required as u64)
    }

    /// Returns how many of the items that must still be written are additional items.
    pub(crate) fn additional_needed(&self, plan: &ObjectListPlan, progress: Progress) -> u64 {
        let required = self.properties.iter().filter(|property| property.1).count() as u64;
        self.items(plan, progress) - required.min(self.items(plan, progress))
    }

    /// Returns the steps of the cheapest choice of this number of items.
    fn fill(&self, plan: &ObjectListPlan, items: usize) -> u64 {
        if plan.order == ItemOrder::Leading {
            let properties = self.properties.iter().map(|property| property.0).take(items);
            let sum = properties.fold(0, plus);
            return plus(
                sum,
                self.additional_sum(items.saturating_sub(self.properties.len())),
            );
        }
        let (must, may): (Vec<_>, Vec<_>) = self.properties.iter().partition(|property| property.1);
        let mut may: Vec<u64> = may.into_iter().map(|(length, _)| length).collect();
        may.sort_unstable();
        let mut missing = items - must.len().min(items);
        let mut sum = must.into_iter().map(|(length, _)| length).fold(0, plus);
        // Properties that are cheaper than the next additional item come first.
        let mut added = 0;
        for length in may {
            while missing > 0 && self.additional_at(added) < length && added <= self.additional.len() {
                sum = plus(sum, self.additional_at(added));
                (added, missing) = (added + 1, missing - 1);
            }
            if missing > 0 && length <= self.additional_at(added) {
                sum = plus(sum, length);
                missing -= 1;
            }
        }
        match missing {
            0 => sum,
            // No additional item was skipped, so the sum up to here is part of the sum up to there.
            more => plus(
                sum,
                self.additional_sum(added + more)
                    .saturating_sub(self.additional_sum(added)),
            ),
        }
    }

    fn additional_at(&self, index: usize) -> u64 {
        let last = self.additional.last().copied().unwrap_or(NEVER);
        self.additional.get(index).copied().unwrap_or(last)
    }

    fn additional_sum(&self, items: usize) -> u64 {
        let first = self.additional.iter().take(items).copied().fold(0, plus);
        match items.saturating_sub(self.additional.len()) {
            0 => first,
            more => plus(
                first,
                self.additional_at(self.additional.len())
                    .saturating_mul(more as u64),
            ),
        }
    }
}

impl Distances {
    pub(crate) fn of_progress(&self, frames: &Frames, object_list: u32, progress: Progress) -> u64 {
        self.of_progress_with(frames, object_list, progress, 0)
    }

    /// Returns the distance from a progress if `more` keys have been written that the progress does not
    /// include.
    pub(crate) fn of_progress_with(
        &self,
        frames: &Frames,
        object_list: u32,
        progress: Progress,
        more: usize,
    ) -> u64 {
        if let Some(known) = self.lists.get(&(object_list, progress, more)) {
            return known;
        }
        let length = self.find_progress(frames, object_list, progress, more);
        self.lists.insert((object_list, progress, more), length);
        length
    }

    fn find_progress(&self, frames: &Frames, object_list: u32, progress: Progress, more: usize) -> u64 {
        let plan = &frames.nfa.object_lists[object_list as usize];
        if plan.has_demands() {
            return self.of_demanding(frames, object_list, progress, more);
        }
        let mut left = self.left(frames, object_list, progress);
        let needed = left.additional_needed(plan, progress);
        if needed > 0 {
            let written = frames.keys.iter(progress.used).count() + more;
            left.additional = self.additional_of(frames, plan, written, needed);
        }
        left.shortest(plan, progress)
    }

    /// Returns the properties that can still be written, without any additional ones.
    fn left(&self, frames: &Frames, object_list: u32, progress: Progress) -> Left {
        let plan = &frames.nfa.object_lists[object_list as usize];
        let properties = plan.properties.iter().enumerate();
        let properties = properties.filter(|&(index, _)| !frames.is_written(object_list, progress, index));
        Left {
            properties: properties
                .map(|(_, property)| (self.of_property(property), property.required))
                .collect(),
            additional: Vec::new(),
            separator: plan.separator.map_or(0, |rule| self.rules[rule as usize]),
        }
    }

    /// Returns the steps that each of `items` additional items adds, after `written` keys.
    pub(crate) fn additional_of(
        &self,
        frames: &Frames,
        plan: &ObjectListPlan,
        written: usize,
        items: u64,
    ) -> Vec<u64> {
        let items = usize::try_from(items).unwrap_or(usize::MAX);
        let all = written.saturating_add(items);
        let one = |index: usize| match index + 1 < ADDITIONAL_ITEMS {
            true => self.cheapest_additional(frames, plan, written.saturating_add(index + 1)),
            false => self.cheapest_additional(frames, plan, all),
        };
        (0..items.min(ADDITIONAL_ITEMS)).map(one).collect()
    }

    /// Returns the distance of a next key: one of the remaining properties, and the rest of the object list
    /// after it, which is computed once for properties that leave the same items.
    pub(crate) fn of_next_key(&self, frames: &Frames, at: NextKeyState) -> u64 {
        let plan = &frames.nfa.object_lists[at.object_list as usize];
        let changes = self.changes_after(frames, at);
        let mut known: FxHashMap<_, u64> = FxHashMap::default();
        let lengths = frames.open_ways(at).map(|(way, node)| {
            let index = way.property as usize;
            let property = &plan.properties[index];
            let costs = (self.of_property(property), self.meets_of(plan, property));
            let meets = if plan.has_demands() { way.meets } else { 0 };
            let leaves = (costs, property.required, meets, changes.get(index).copied());
            let remaining = known.entry(leaves).or_insert_with(|| {
                let after = frames.after_property(at.object_list, at.progress, index, way.meets);
                self.of_progress(frames, at.object_list, after)
            });
            plus(self.nodes[node as usize], *remaining)
        });
        lengths.min().unwrap_or(NEVER)
    }

    /// Returns the cost of each way to write a property with the demands that it meets; empty if the object
    /// list has no demands.
    fn meets_of(&self, plan: &ObjectListPlan, property: &PropertyPlan) -> Vec<(u64, Meets)> {
        let ways = property.ways.iter().filter(|_| plan.has_demands());
        ways.map(|&(rule, meets)| (self.rules[rule as usize], meets))
            .collect()
    }

    /// Returns, in listed order, a number for each property that distinguishes what is left after it if
    /// properties are chosen to make up a count: it changes where the set of the cheapest wanted properties
    /// changes. Empty if the same is left after all properties.
    fn changes_after(&self, frames: &Frames, at: NextKeyState) -> Vec<usize> {
        let plan = &frames.nfa.object_lists[at.object_list as usize];
        if plan.order == ItemOrder::Any {
            return Vec::new();
        }
        if plan.has_demands() {
            return (0..plan.properties.len()).collect();
        }
        let wanted = plan.min.saturating_sub(at.progress.count + 1);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        if wanted == 0 {
            return Vec::new();
        }
        let mut cheapest: Vec<u64> = Vec::new();
        let mut changed = 0;
        let mut changes = vec![0; plan.properties.len()];
        for (property, change) in plan.properties.iter().zip(&mut changes).rev() {
            *change = changed;
            let cost = self.of_property(property);
            let place = cheapest.partition_point(|&other| other <= cost);
            if place < wanted {
                cheapest.insert(place, cost);
                cheapest.truncate(wanted);
                changed += 1;
            }
        }
        changes
    }

    /// Returns the cost of the cheapest way to write a property.
    pub(crate) fn of_property(&self, property: &PropertyPlan) -> u64 {
        let ways = property.ways.iter().map(|&(rule, _)| self.rules[rule as usize]);
        ways.min().unwrap_or(NEVER)
    }

    /// Returns the steps of the cheapest additional item that is the `keys`-th distinct key.
    pub(crate) fn cheapest_additional(&self, frames: &Frames, plan: &ObjectListPlan, keys: usize) -> u64 {
        let items = plan.additional.iter().map(|additional| {
            let key = additional
                .key
                .map_or(0, |key| self.key_among(frames.terminal(key), key, (plan, keys)));
            plus(key, self.rules[additional.item as usize])
        });
        items.min().unwrap_or(NEVER)
    }

    /// Returns the steps of a key that is the `keys`-th distinct one and not taken.
    pub(crate) fn key_among(
        &self,
        terminal: &Terminal,
        key: u32,
        (plan, keys): (&ObjectListPlan, usize),
    ) -> u64 {
        let written = keys.saturating_sub(1);
        let mut passed = 0;
        loop {
            spend(1);
            let length = match self.achievable && passed > 0 {
                true => self.of_many(terminal, key, terminal.start(), passed),
                false => self.of_cursor(key, terminal.start()),
            };
            // Only taken keys that are no longer than this count.
            let near = plan
                .taken
                .iter()
                .filter(|word| word.len() as u64 <= length && terminal.matches_from(terminal.start(), word));
            let most = written.saturating_add(near.count());
            if most <= passed || !self.achievable {
                return length;
            }
            passed = most;
        }
    }

    /// Returns the distance in an object list whose items have demands to meet, if `more` keys have been
    /// written that the progress does not include, by a search over the progresses that its items lead to.
    pub(crate) fn of_demanding(&self, frames: &Frames, object_list: u32, from: Progress, more: usize) -> u64 {
        if !from.started && frames.analysis.is_nullable(Callee::ObjectList(object_list)) {
            return 0;
        }
        let plan = &frames.nfa.object_lists[object_list as usize];
        let separator = plan.separator.map_or(0, |rule| self.rules[rule as usize]);
        let mut open = BinaryHeap::from([Reverse((0, more, Some(from)))]);
        let mut seen = FxHashSet::default();
        while let Some(Reverse((length, keys, progress))) = open.pop() {
            spend(1);
            let Some(progress) = progress else { return length };
            if frames.object_list_may_end(object_list, progress) {
                return length;
            }
            if !seen.insert(progress) {
                continue;
            }
            if seen.len() > REGISTERS {
                return if self.achievable { NEVER } else { length };
            }
            let before = match progress.started && !progress.separated {
                true => plus(length, separator),
                false => length,
            };
            let separated = Progress {
                separated: true,
                ..progress
            };
            for call in frames.item_calls(object_list, separated) {
                let (item, keyed, next) = self.of_item(frames, object_list, call, keys);
                if plus(before, item) != NEVER {
                    open.push(Reverse((plus(before, item), keys + usize::from(keyed), next)));
                }
            }
        }
        NEVER
    }

    /// Returns the steps of an item after a number of new keys, whether it has a key, and the progress after
    /// it, which is `None` if the object list is complete.
    fn of_item(
        &self,
        frames: &Frames,
        object_list: u32,
        call: Call,
        keys: usize,
    ) -> (u64, bool, Option<Progress>) {
        let next = |frame| match frames.get(frame).key {
            FrameKey::ObjectList(_, progress) => Some(progress),
            _ => None,
        };
        match frames.get(call.callee).key {
            FrameKey::RuleStart(rule) => (self.rules[rule as usize], false, next(call.then)),
            FrameKey::Key {
                additional, progress, ..
            } => {
                let plan = &frames.nfa.object_lists[object_list as usize].additional[additional as usize];
                let used = frames.keys.iter(progress.used).count() + keys;
                let all = &frames.nfa.object_lists[object_list as usize];
                let word = plan.key.map_or(NEVER, |key| {
                    self.key_among(frames.terminal(key), key, (all, used + 1))
                });
                let after = frames.after_additional(object_list, additional, progress);
                (plus(word, self.rules[plan.item as usize]), true, Some(after))
            }
            _ => (NEVER, false, None),
        }
    }
}
