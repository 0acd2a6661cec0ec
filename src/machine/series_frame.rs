//! How the frames of series and of their keys go on: the calls that a register allows.

use super::frame::{Call, FrameId, FrameKey, Frames, KeyView, RETURN};
use super::nfa::Callee;
use super::series::{Outlook, Register, has_bit, with_bit};
use super::terminal::{Cursor, Terminal};
use crate::grammar::SeriesOrder;

impl Frames {
    pub(super) fn key_terminal(&self, series: u32, rest: u32) -> &Terminal {
        let key = self.nfa.series[series as usize].rest[rest as usize].0;
        self.terminal(key.expect("only keyed items have key frames"))
    }

    /// How many more items the rest can supply; `None` is no bound.
    pub(super) fn rest_capacity(&self, series: u32, register: Register) -> Option<u64> {
        let used = self.keys.get(register.used).len() as u64;
        self.capacities[series as usize].map(|capacity| capacity.saturating_sub(used))
    }

    pub(super) fn outlook(&self, series: u32, register: Register) -> Outlook {
        let plan = &self.nfa.series[series as usize];
        plan.outlook(
            |index| self.is_written(series, register, index),
            self.rest_capacity(series, register),
        )
    }

    pub(super) fn is_written(&self, series: u32, register: Register, index: usize) -> bool {
        match self.nfa.series[series as usize].order {
            SeriesOrder::Listed => index < register.done as usize,
            SeriesOrder::Any => has_bit(self.written.get(register.done), index),
        }
    }

    pub(super) fn series_may_end(&self, series: u32, register: Register) -> bool {
        // The start frame is never complete: a caller passes an empty series by.
        let plan = &self.nfa.series[series as usize];
        register.started
            && !register.separated
            && plan.may_end(register.count, &self.outlook(series, register))
    }

    pub(super) fn series_calls(&self, series: u32, register: Register) -> Box<[Call]> {
        let plan = &self.nfa.series[series as usize];
        let separator = plan.separator.filter(|_| register.started && !register.separated);
        let Some(separator) = separator.map(Callee::Rule) else {
            return self.item_calls(series, register).into();
        };
        let separated = Register {
            separated: true,
            ..register
        };
        let mut items = self.item_calls(series, separated);
        if items.is_empty() {
            return Box::default();
        }
        if !self.analysis.is_nullable(separator) {
            items.clear();
        }
        let then = self.intern(FrameKey::Series(series, separated));
        items.push(Call {
            callee: self.start(separator),
            then,
        });
        items.into()
    }

    pub(super) fn item_calls(&self, series: u32, register: Register) -> Vec<Call> {
        let plan = &self.nfa.series[series as usize];
        let outlook = self.outlook(series, register);
        let members = plan.next_members(
            register,
            |index| self.is_written(series, register, index),
            outlook,
        );
        let mut calls: Vec<Call> = members
            .map(|index| self.member_call(series, register, index))
            .collect();
        if plan.rest_is_open(register, &outlook) {
            let items = 0..plan.rest.len() as u32;
            calls.extend(items.filter_map(|rest| self.rest_call(series, register, rest)));
        }
        calls
    }

    pub(super) fn member_call(&self, series: u32, register: Register, index: usize) -> Call {
        let plan = &self.nfa.series[series as usize];
        let done = match plan.order {
            SeriesOrder::Listed => index as u32 + 1,
            SeriesOrder::Any => self
                .written
                .intern(with_bit(self.written.get(register.done), index)),
        };
        let after = Register {
            done,
            ..self.one_more(series, register)
        };
        Call {
            callee: self.start(Callee::Rule(plan.members[index].0)),
            then: self.series_frame(series, after),
        }
    }

    pub(super) fn rest_call(&self, series: u32, register: Register, rest: u32) -> Option<Call> {
        let plan = &self.nfa.series[series as usize];
        let (key, item) = plan.rest[rest as usize];
        if key.is_some() {
            let cursor = self.key_terminal(series, rest).start();
            let exists = self.unused_key_exists(series, rest, register, cursor, 0);
            let key = FrameKey::Key {
                series,
                rest,
                register,
                cursor,
                text: 0,
            };
            return exists.then(|| Call {
                callee: self.intern(key),
                then: RETURN,
            });
        }
        let after = self.after_rest(series, register);
        Some(Call {
            callee: self.start(Callee::Rule(item)),
            then: self.series_frame(series, after),
        })
    }

    pub(super) fn after_rest(&self, series: u32, register: Register) -> Register {
        let plan = &self.nfa.series[series as usize];
        let done = match plan.order {
            SeriesOrder::Listed => plan.members.len() as u32,
            SeriesOrder::Any => register.done,
        };
        Register {
            done,
            ..self.one_more(series, register)
        }
    }

    pub(super) fn one_more(&self, series: u32, register: Register) -> Register {
        let count = self.nfa.series[series as usize].count_on(register.count);
        Register {
            count,
            started: true,
            separated: false,
            ..register
        }
    }

    /// The frame of a series after an item; a series that can only end is complete.
    pub(super) fn series_frame(&self, series: u32, register: Register) -> FrameId {
        let id = self.intern(FrameKey::Series(series, register));
        let plan = &self.nfa.series[series as usize];
        let full = plan.max.is_some_and(|max| register.count >= max);
        let listed = plan.order == SeriesOrder::Listed && register.done as usize == plan.members.len();
        let over = full || (listed && plan.rest.is_empty());
        if over && self.get(id).accepting {
            RETURN
        } else {
            id
        }
    }

    pub(super) fn key_calls(
        &self,
        series: u32,
        rest: u32,
        register: Register,
        cursor: Cursor,
        text: u32,
    ) -> Box<[Call]> {
        if !self.key_terminal(series, rest).is_accepting(cursor) || self.is_used(register, text) {
            return Box::default();
        }
        let mut used = self.keys.get(register.used).to_vec();
        let text = self.texts.get(text).clone();
        let at = used.partition_point(|known| **known < *text);
        used.insert(at, text);
        let used = self.keys.intern(used.into());
        let after = Register {
            used,
            ..self.after_rest(series, register)
        };
        let item = self.nfa.series[series as usize].rest[rest as usize].1;
        Box::new([Call {
            callee: self.start(Callee::Rule(item)),
            then: self.series_frame(series, after),
        }])
    }

    pub(super) fn is_used(&self, register: Register, text: u32) -> bool {
        self.keys
            .get(register.used)
            .binary_search_by(|known| (**known).cmp(&self.texts.get(text)[..]))
            .is_ok()
    }

    /// Whether some key that goes on from here has not been written yet.
    pub(super) fn unused_key_exists(
        &self,
        series: u32,
        rest: u32,
        register: Register,
        cursor: Cursor,
        text: u32,
    ) -> bool {
        let terminal = self.key_terminal(series, rest);
        let used = self.keys.get(register.used);
        if used.is_empty() || terminal.is_infinite(cursor) {
            return true;
        }
        let prefix = self.texts.get(text);
        let taken = used.iter().filter(|key| {
            key.strip_prefix(&prefix[..])
                .is_some_and(|left| terminal.matches_from(cursor, left))
        });
        let taken = taken.count();
        terminal
            .words(cursor, taken)
            .is_none_or(|words| words.len() > taken)
    }

    /// What a mask needs to know of a key in progress; `None` for any other frame.
    pub(super) fn key_view(&self, id: FrameId) -> Option<KeyView<'_>> {
        let FrameKey::Key {
            series,
            rest,
            register,
            cursor,
            text,
        } = self.get(id).key
        else {
            return None;
        };
        let (key, item) = self.nfa.series[series as usize].rest[rest as usize];
        let terminal = self.terminal(key?);
        let (text, used) = (&**self.texts.get(text), &**self.keys.get(register.used));
        Some(KeyView {
            terminal,
            cursor,
            text,
            used,
            item: self.start(Callee::Rule(item)),
        })
    }
}
