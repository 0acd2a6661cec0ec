//! The frames of lists: the calls that the items written so far allow.

use super::contains::Supply;
use super::progress::{MANY_WORDS, Outlook, Progress, has_bit, with_bit};
use crate::grammar::{ItemOrder, Meets};
use crate::pushdown::frame::{Call, Calls, FrameId, FrameKey, Frames, RETURN};
use crate::pushdown::intern::interner::NIL;
use crate::pushdown::plan::nfa::{AdditionalPlan, Callee};
use crate::work::spend;

/// The number of properties that are looked at in one round of counted work.
const PROPERTIES_A_ROUND: usize = 8;

impl Frames {
    /// Returns how many more additional items there can be; `None` if unbounded.
    pub(crate) fn additional_capacity(&self, object_list: u32, progress: Progress) -> Option<u64> {
        self.capacities[object_list as usize].map(|capacity| {
            let used = self.keys.iter(progress.used).count() as u64;
            capacity.saturating_sub(used)
        })
    }

    pub(crate) fn outlook(&self, object_list: u32, progress: Progress) -> Outlook {
        let plan = &self.nfa.object_lists[object_list as usize];
        spend(1 + plan.properties.len() / PROPERTIES_A_ROUND);
        plan.outlook(
            |index| self.is_written(object_list, progress, index),
            self.additional_capacity(object_list, progress),
        )
    }

    pub(crate) fn is_written(&self, object_list: u32, progress: Progress, index: usize) -> bool {
        match self.nfa.object_lists[object_list as usize].order {
            ItemOrder::Listed | ItemOrder::Leading => index < progress.done as usize,
            ItemOrder::Any => has_bit(self.written.get(progress.done), index),
        }
    }

    pub(crate) fn object_list_may_end(&self, object_list: u32, progress: Progress) -> bool {
        // The start frame is never complete: a caller skips an empty object list.
        let plan = &self.nfa.object_lists[object_list as usize];
        progress.started
            && !progress.separated
            && plan.may_end(progress.count, &self.outlook(object_list, progress))
            && plan.demands_are_met(self.met.get(progress.met))
    }

    /// Returns `true` if an object list with demands can still be completed when this key is used as well.
    fn can_meet_demands(&self, object_list: u32, progress: Progress, key: Option<Vec<u8>>) -> bool {
        let plan = &self.nfa.object_lists[object_list as usize];
        let used = self.used_keys(progress);
        let used: Vec<Vec<u8>> = used.iter().map(<[u8]>::to_vec).chain(key).collect();
        let open = plan.properties.iter().enumerate();
        let open = open.filter(|&(index, _)| !self.is_written(object_list, progress, index));
        let supply = Supply {
            plan,
            stock: &self.stocks[object_list as usize],
            properties: open
                .map(|(_, property)| {
                    let ways = property.ways.iter().map(|&(_, meets)| meets);
                    (ways.collect(), property.required)
                })
                .collect(),
            used: &used,
            count: progress.count,
            met: self.met.get(progress.met),
        };
        supply.suffices()
    }

    /// Returns `true` if an object list with demands can be completed after an unused key of an additional
    /// item. Keys that can run out are all alike, so one of them represents all.
    fn some_key_meets_demands(
        &self,
        object_list: u32,
        additional: u32,
        before: Progress,
        after: Progress,
    ) -> bool {
        let terminal = self.key_terminal(object_list, additional);
        let Some(words) = terminal.words(terminal.start(), MANY_WORDS) else {
            return self.can_meet_demands(object_list, after, None);
        };
        spend(words.len());
        let used = self.used_keys(before);
        let taken = |word: &Vec<u8>| self.nfa.object_lists[object_list as usize].is_taken(word);
        let mut unused = words
            .into_iter()
            .filter(|word| !used.contains(word) && !taken(word));
        unused
            .next()
            .is_some_and(|word| self.can_meet_demands(object_list, after, Some(word)))
    }

    pub(crate) fn object_list_calls(&self, object_list: u32, progress: Progress) -> Calls {
        let plan = &self.nfa.object_lists[object_list as usize];
        let separator = plan.separator.filter(|_| progress.started && !progress.separated);
        let Some(separator) = separator.map(Callee::Rule) else {
            return self.item_calls(object_list, progress);
        };
        let separated = Progress {
            separated: true,
            ..progress
        };
        if !self.has_items(object_list, separated) {
            return Calls::new();
        }
        let mut items = match self.analysis.is_nullable(separator) {
            true => self.item_calls(object_list, separated),
            false => Calls::new(),
        };
        let then = self.intern(FrameKey::ObjectList(object_list, separated));
        items.push(Call {
            callee: self.start(separator),
            then,
        });
        items
    }

    /// Returns `true` if an item may come next.
    fn has_items(&self, object_list: u32, progress: Progress) -> bool {
        let plan = &self.nfa.object_lists[object_list as usize];
        if plan.has_demands() {
            return !self.item_calls(object_list, progress).is_empty();
        }
        let outlook = self.outlook(object_list, progress);
        let is_written = |index| self.is_written(object_list, progress, index);
        let mut additional = 0..plan.additional.len() as u32;
        plan.next_properties(progress, is_written, outlook)
            .next()
            .is_some()
            || (plan.additional_is_open(progress, &outlook)
                && additional
                    .any(|additional| self.additional_call(object_list, progress, additional).is_some()))
    }

    pub(crate) fn item_calls(&self, object_list: u32, progress: Progress) -> Calls {
        let plan = &self.nfa.object_lists[object_list as usize];
        if plan.has_demands() {
            return self.demanded_calls(object_list, progress);
        }
        let outlook = self.outlook(object_list, progress);
        let mut calls = self.next_property_calls(object_list, progress, outlook);
        if plan.additional_is_open(progress, &outlook) {
            let items = 0..plan.additional.len() as u32;
            calls.extend(
                items.filter_map(|additional| self.additional_call(object_list, progress, additional)),
            );
        }
        calls
    }

    /// Returns the calls of the properties that may come next: a single property directly, several as a
    /// next key.
    fn next_property_calls(&self, object_list: u32, progress: Progress, outlook: Outlook) -> Calls {
        let plan = &self.nfa.object_lists[object_list as usize];
        let is_written = |index| self.is_written(object_list, progress, index);
        let mut properties = plan.next_properties(progress, is_written, outlook);
        match (properties.next(), properties.next()) {
            (None, _) => Calls::new(),
            (Some(only), None) => self.property_calls(object_list, progress, only),
            _ => self
                .next_key_call(object_list, progress, outlook)
                .into_iter()
                .collect(),
        }
    }

    /// Returns the calls of the items that may come next in an object list with demands: each is judged by
    /// the progress after it.
    fn demanded_calls(&self, object_list: u32, progress: Progress) -> Calls {
        let plan = &self.nfa.object_lists[object_list as usize];
        let first = if plan.is_listed() {
            progress.done as usize
        } else {
            0
        };
        let mut calls = Calls::new();
        let mut required = 0;
        for (index, property) in plan.properties.iter().enumerate().skip(first) {
            if self.is_written(object_list, progress, index) {
                continue;
            }
            if required == 0 || !plan.is_listed() {
                calls.extend(self.property_calls(object_list, progress, index));
            }
            required += u64::from(property.required || plan.order == ItemOrder::Leading);
        }
        if plan.properties_are_passed(progress, required) {
            let items = 0..plan.additional.len() as u32;
            calls.extend(
                items.filter_map(|additional| self.additional_call(object_list, progress, additional)),
            );
        }
        calls
    }

    pub(crate) fn property_calls(&self, object_list: u32, progress: Progress, index: usize) -> Calls {
        let plan = &self.nfa.object_lists[object_list as usize];
        let mut calls = Calls::new();
        for &(rule, meets) in &plan.properties[index].ways {
            let after = self.after_property(object_list, progress, index, meets);
            if !plan.has_demands() || self.can_meet_demands(object_list, after, None) {
                calls.push(Call {
                    callee: self.start(Callee::Rule(rule)),
                    then: self.object_list_frame(object_list, after),
                });
            }
        }
        calls
    }

    /// Returns the progress after a property.
    pub(crate) fn after_property(
        &self,
        object_list: u32,
        progress: Progress,
        index: usize,
        meets: Meets,
    ) -> Progress {
        let done = match self.nfa.object_lists[object_list as usize].order {
            ItemOrder::Listed | ItemOrder::Leading => index as u32 + 1,
            ItemOrder::Any => self
                .written
                .intern(with_bit(self.written.get(progress.done), index)),
        };
        Progress {
            done,
            ..self.one_more(object_list, progress, meets)
        }
    }

    pub(crate) fn additional_call(
        &self,
        object_list: u32,
        progress: Progress,
        additional: u32,
    ) -> Option<Call> {
        let plan = &self.nfa.object_lists[object_list as usize];
        let AdditionalPlan { key, item, .. } = plan.additional[additional as usize];
        let after = self.after_additional(object_list, additional, progress);
        if key.is_some() {
            let cursor = self.key_terminal(object_list, additional).start();
            let exists = self.unused_key_exists((object_list, additional, progress), cursor, b"")
                && (!plan.has_demands()
                    || self.some_key_meets_demands(object_list, additional, progress, after));
            let key = FrameKey::Key {
                object_list,
                additional,
                progress,
                cursor,
                text: NIL,
            };
            return exists.then(|| Call {
                callee: self.intern(key),
                then: RETURN,
            });
        }
        if plan.has_demands() && !self.can_meet_demands(object_list, after, None) {
            return None;
        }
        Some(Call {
            callee: self.start(Callee::Rule(item)),
            then: self.object_list_frame(object_list, after),
        })
    }

    pub(crate) fn after_additional(&self, object_list: u32, additional: u32, progress: Progress) -> Progress {
        let plan = &self.nfa.object_lists[object_list as usize];
        let done = match plan.order {
            ItemOrder::Listed | ItemOrder::Leading => plan.properties.len() as u32,
            ItemOrder::Any => progress.done,
        };
        Progress {
            done,
            ..self.one_more(object_list, progress, plan.additional[additional as usize].meets)
        }
    }

    pub(crate) fn one_more(&self, object_list: u32, progress: Progress, meets: Meets) -> Progress {
        let plan = &self.nfa.object_lists[object_list as usize];
        let met = if plan.has_demands() {
            self.met.intern(plan.meet(self.met.get(progress.met), meets))
        } else {
            progress.met
        };
        Progress {
            count: plan.count_on(progress.count),
            met,
            started: true,
            separated: false,
            ..progress
        }
    }

    /// Returns the frame of an object list after an item; [`RETURN`] if the object list can only end.
    pub(crate) fn object_list_frame(&self, object_list: u32, progress: Progress) -> FrameId {
        let id = self.intern(FrameKey::ObjectList(object_list, progress));
        let plan = &self.nfa.object_lists[object_list as usize];
        let full = plan.max.is_some_and(|max| progress.count >= max);
        let listed = plan.is_listed() && progress.done as usize == plan.properties.len();
        let over = full || (listed && plan.additional.is_empty());
        if over && self.get(id).accepting {
            RETURN
        } else {
            id
        }
    }

    /// Returns `true` if an object list no longer counts anything.
    pub(crate) fn forgets(&self, object_list: u32, progress: Progress) -> bool {
        let plan = &self.nfa.object_lists[object_list as usize];
        plan.max.is_none() && progress.count >= plan.min && !plan.has_demands() && !progress.doubted
    }
}
