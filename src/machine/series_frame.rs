//! How the frames of series and of their keys go on: the calls that a register allows.

use std::sync::Arc;

use smallvec::smallvec;

use super::demand::Supply;
use super::frame::{Call, Calls, FrameId, FrameKey, Frames, RETURN};
use super::interner::NIL;
use super::key_set::KeySet;
use super::nfa::{Callee, RestPlan};
use super::series::{MANY_WORDS, Outlook, Register, has_bit, with_bit};
use super::terminal::{Cursor, Terminal};
use crate::grammar::{Meets, SeriesOrder};

impl Frames {
    pub(super) fn key_terminal(&self, series: u32, rest: u32) -> &Arc<Terminal> {
        let key = self.nfa.series[series as usize].rest[rest as usize].key;
        self.terminal(key.expect("only keyed items have key frames"))
    }

    /// How many more items the rest can supply; `None` is no bound.
    pub(super) fn rest_capacity(&self, series: u32, register: Register) -> Option<u64> {
        self.capacities[series as usize].map(|capacity| {
            let used = self.keys.iter(register.used).count() as u64;
            capacity.saturating_sub(used)
        })
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
            SeriesOrder::Listed | SeriesOrder::Leading => index < register.done as usize,
            SeriesOrder::Any => has_bit(self.written.get(register.done), index),
        }
    }

    pub(super) fn series_may_end(&self, series: u32, register: Register) -> bool {
        // The start frame is never complete: a caller passes an empty series by.
        let plan = &self.nfa.series[series as usize];
        register.started
            && !register.separated
            && (register.repeated || !self.is_repeating(series))
            && plan.may_end(register.count, &self.outlook(series, register))
            && plan.demands_are_met(self.met.get(register.met))
    }

    /// Whether a series with demands can still be brought to an end, when this key is used as well.
    fn can_meet_demands(&self, series: u32, register: Register, key: Option<Vec<u8>>) -> bool {
        let plan = &self.nfa.series[series as usize];
        let used = self.used_keys(register);
        let used: Vec<Vec<u8>> = used.iter().map(<[u8]>::to_vec).chain(key).collect();
        let open = plan.members.iter().enumerate();
        let open = open.filter(|&(index, _)| !self.is_written(series, register, index));
        let supply = Supply {
            plan,
            stock: &self.stocks[series as usize],
            members: open
                .map(|(_, member)| {
                    let ways = member.ways.iter().map(|&(_, meets)| meets);
                    (ways.collect(), member.required)
                })
                .collect(),
            used: &used,
            count: register.count,
            met: self.met.get(register.met),
        };
        supply.suffices()
    }

    /// Whether a series with demands can be brought to an end behind a key of a rest item that was not used yet. Keys
    /// that can run out are all alike, so one of them speaks for all.
    fn some_key_meets_demands(&self, series: u32, rest: u32, before: Register, after: Register) -> bool {
        let terminal = self.key_terminal(series, rest);
        let Some(words) = terminal.words(terminal.start(), MANY_WORDS) else {
            return self.can_meet_demands(series, after, None);
        };
        let used = self.used_keys(before);
        let taken = |word: &Vec<u8>| self.nfa.series[series as usize].is_taken(word);
        let mut unused = words
            .into_iter()
            .filter(|word| !used.contains(word) && !taken(word));
        unused
            .next()
            .is_some_and(|word| self.can_meet_demands(series, after, Some(word)))
    }

    pub(super) fn series_calls(&self, series: u32, register: Register) -> Calls {
        let plan = &self.nfa.series[series as usize];
        let separator = plan.separator.filter(|_| register.started && !register.separated);
        let Some(separator) = separator.map(Callee::Rule) else {
            return self.item_calls(series, register);
        };
        let separated = Register {
            separated: true,
            ..register
        };
        if !self.has_items(series, separated) {
            return Calls::new();
        }
        let mut items = match self.analysis.is_nullable(separator) {
            true => self.item_calls(series, separated),
            false => Calls::new(),
        };
        let then = self.intern(FrameKey::Series(series, separated));
        items.push(Call {
            callee: self.start(separator),
            then,
        });
        items
    }

    /// Whether an item may come next.
    fn has_items(&self, series: u32, register: Register) -> bool {
        let plan = &self.nfa.series[series as usize];
        if plan.has_demands() || self.is_repeating(series) {
            return !self.item_calls(series, register).is_empty();
        }
        let outlook = self.outlook(series, register);
        let is_written = |index| self.is_written(series, register, index);
        let mut rest = 0..plan.rest.len() as u32;
        plan.next_members(register, is_written, outlook).next().is_some()
            || (plan.rest_is_open(register, &outlook)
                && rest.any(|rest| self.rest_call(series, register, rest).is_some()))
    }

    pub(super) fn item_calls(&self, series: u32, register: Register) -> Calls {
        let plan = &self.nfa.series[series as usize];
        if plan.has_demands() {
            return self.demanded_calls(series, register);
        }
        if self.is_repeating(series) {
            return self.repeating_calls(series, register);
        }
        let outlook = self.outlook(series, register);
        let mut calls = self.next_member_calls(series, register, outlook);
        if plan.rest_is_open(register, &outlook) {
            let items = 0..plan.rest.len() as u32;
            calls.extend(items.filter_map(|rest| self.rest_call(series, register, rest)));
        }
        calls
    }

    /// The members that may come next: one by itself, several by what they have in common.
    fn next_member_calls(&self, series: u32, register: Register, outlook: Outlook) -> Calls {
        let plan = &self.nfa.series[series as usize];
        let is_written = |index| self.is_written(series, register, index);
        let mut members = plan.next_members(register, is_written, outlook);
        match (members.next(), members.next()) {
            (None, _) => Calls::new(),
            (Some(only), None) => self.member_calls(series, register, only),
            _ => self.choice_call(series, register, outlook).into_iter().collect(),
        }
    }

    /// The items that may come next where demands have to be met: each is judged by the register behind it.
    fn demanded_calls(&self, series: u32, register: Register) -> Calls {
        let plan = &self.nfa.series[series as usize];
        let first = if plan.is_listed() {
            register.done as usize
        } else {
            0
        };
        let mut calls = Calls::new();
        let mut required = 0;
        for (index, member) in plan.members.iter().enumerate().skip(first) {
            if self.is_written(series, register, index) {
                continue;
            }
            if required == 0 || !plan.is_listed() {
                calls.extend(self.member_calls(series, register, index));
            }
            required += u64::from(member.required || plan.order == SeriesOrder::Leading);
        }
        if plan.members_are_passed(register, required) {
            let items = 0..plan.rest.len() as u32;
            calls.extend(items.filter_map(|rest| self.rest_call(series, register, rest)));
        }
        calls
    }

    pub(super) fn member_calls(&self, series: u32, register: Register, index: usize) -> Calls {
        let plan = &self.nfa.series[series as usize];
        let mut calls = Calls::new();
        for &(rule, meets) in &plan.members[index].ways {
            let after = self.after_member(series, register, index, meets);
            if !plan.has_demands() || self.can_meet_demands(series, after, None) {
                calls.push(Call {
                    callee: self.start(Callee::Rule(rule)),
                    then: self.series_frame(series, after),
                });
            }
        }
        calls
    }

    /// The register behind a member.
    pub(super) fn after_member(
        &self,
        series: u32,
        register: Register,
        index: usize,
        meets: Meets,
    ) -> Register {
        let done = match self.nfa.series[series as usize].order {
            SeriesOrder::Listed | SeriesOrder::Leading => index as u32 + 1,
            SeriesOrder::Any => self
                .written
                .intern(with_bit(self.written.get(register.done), index)),
        };
        Register {
            done,
            ..self.one_more(series, register, meets)
        }
    }

    pub(super) fn rest_call(&self, series: u32, register: Register, rest: u32) -> Option<Call> {
        let plan = &self.nfa.series[series as usize];
        let RestPlan { key, item, .. } = plan.rest[rest as usize];
        let after = self.after_rest(series, rest, register);
        if key.is_some() {
            let cursor = self.key_terminal(series, rest).start();
            let exists = self.unused_key_exists((series, rest, register), cursor, b"")
                && (!plan.has_demands() || self.some_key_meets_demands(series, rest, register, after));
            let key = FrameKey::Key {
                series,
                rest,
                register,
                cursor,
                text: NIL,
            };
            return exists.then(|| Call {
                callee: self.intern(key),
                then: RETURN,
            });
        }
        if plan.has_demands() && !self.can_meet_demands(series, after, None) {
            return None;
        }
        Some(Call {
            callee: self.start(Callee::Rule(item)),
            then: self.series_frame(series, after),
        })
    }

    pub(super) fn after_rest(&self, series: u32, rest: u32, register: Register) -> Register {
        let plan = &self.nfa.series[series as usize];
        let done = match plan.order {
            SeriesOrder::Listed | SeriesOrder::Leading => plan.members.len() as u32,
            SeriesOrder::Any => register.done,
        };
        Register {
            done,
            ..self.one_more(series, register, plan.rest[rest as usize].meets)
        }
    }

    pub(super) fn one_more(&self, series: u32, register: Register, meets: Meets) -> Register {
        let plan = &self.nfa.series[series as usize];
        let met = if plan.has_demands() {
            self.met.intern(plan.meet(self.met.get(register.met), meets))
        } else {
            register.met
        };
        Register {
            count: plan.count_on(register.count),
            met,
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
        let listed = plan.is_listed() && register.done as usize == plan.members.len();
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
    ) -> Calls {
        if !self.key_terminal(series, rest).is_accepting(cursor) || self.is_used(series, register, text) {
            return Calls::new();
        }
        let then = self.frame_after_key(series, rest, register, text);
        smallvec![Call {
            callee: self.item_start(series, rest),
            then,
        }]
    }

    fn frame_after_key(&self, series: u32, rest: u32, register: Register, text: u32) -> FrameId {
        let after = self.after_rest(series, rest, register);
        let after = match self.is_repeating(series) {
            true => self.with_key_again(after, text),
            false => Register {
                used: self.keys.push(register.used, text),
                ..after
            },
        };
        self.series_frame(series, after)
    }

    fn is_used(&self, series: u32, register: Register, text: u32) -> bool {
        let plan = &self.nfa.series[series as usize];
        if self.is_repeating(series) {
            return false;
        }
        self.keys.iter(register.used).any(|used| used == text)
            || (!plan.taken.is_empty() && plan.is_taken(&self.texts.to_vec(text)))
    }

    /// Whether every key can be written: none was, and none is taken.
    fn all_keys_are_free(&self, series: u32, register: Register) -> bool {
        self.unwritable(series, register) == 0
    }

    /// How many keys can no longer be written, known or not.
    fn unwritable(&self, series: u32, register: Register) -> usize {
        if self.is_repeating(series) {
            return 0;
        }
        let taken = self.nfa.series[series as usize].taken.len();
        self.used_keys(register).len() + taken + usize::from(register.doubted)
    }

    /// Whether more keys go on from a cursor than can no longer be written, whichever those are.
    fn keys_abound(&self, (series, rest, register): (u32, u32, Register), cursor: Cursor) -> bool {
        let terminal = self.key_terminal(series, rest);
        terminal.is_infinite(cursor) || terminal.has_more_words(cursor, self.unwritable(series, register))
    }

    /// Where a series goes on behind any key with its item, for looking ahead: the register does not know the key.
    /// `None` if what may follow depends on it, as where keys can run out or a key in doubt was written before.
    pub(super) fn behind_any_key(&self, id: FrameId) -> Option<FrameId> {
        let (series, rest, register, _) = self.key_parts(id);
        let plan = &self.nfa.series[series as usize];
        if self.is_repeating(series) {
            let behind = || self.series_frame(series, self.after_rest(series, rest, register));
            return register.repeated.then(behind);
        }
        let after = Register {
            doubted: true,
            ..self.after_rest(series, rest, register)
        };
        let most = self.unwritable(series, after);
        let abounds = |&key: &u32| {
            let terminal = self.terminal(key);
            terminal.has_more_words(terminal.start(), most)
        };
        // Where some keys abound an item can follow in any case; those that may run out are in doubt once they begin.
        let mut keys = plan.rest.iter().filter_map(|rest| rest.key.as_ref()).peekable();
        let is_known = !register.doubted
            && !plan.has_demands()
            && self.capacities[series as usize].is_none()
            && (keys.peek().is_none() || keys.any(abounds));
        is_known.then(|| self.series_frame(series, after))
    }

    /// Whether the key of the frame follows one that is not known.
    pub(super) fn is_doubted(&self, id: FrameId) -> bool {
        self.key_parts(id).2.doubted
    }

    /// Whether it depends on a key in doubt if a key may stand at this cursor.
    pub(super) fn is_in_doubt(&self, id: FrameId, cursor: Cursor) -> bool {
        let (series, rest, register, _) = self.key_parts(id);
        register.doubted && !self.keys_abound((series, rest, register), cursor)
    }

    /// Whether some key that goes on from here has not been written yet.
    fn unused_key_exists(
        &self,
        (series, rest, register): (u32, u32, Register),
        cursor: Cursor,
        prefix: &[u8],
    ) -> bool {
        self.keys_abound((series, rest, register), cursor)
            || self.unused_among(&self.used_keys(register), (series, rest), cursor, prefix)
    }

    /// The same, where the written keys are known; they are in order.
    fn unused_among(&self, used: &KeySet, (series, rest): (u32, u32), cursor: Cursor, prefix: &[u8]) -> bool {
        let terminal = self.key_terminal(series, rest);
        if terminal.is_infinite(cursor) {
            return true;
        }
        let taken = self.nfa.series[series as usize].taken.behind(prefix);
        let unwritable = used.behind(prefix).chain(taken);
        let unwritable = unwritable.filter(|left| terminal.matches_from(cursor, left));
        terminal.has_more_words(cursor, unwritable.count())
    }

    pub(super) fn key_parts(&self, id: FrameId) -> (u32, u32, Register, u32) {
        match self.get(id).key {
            FrameKey::Key {
                series,
                rest,
                register,
                text,
                ..
            } => (series, rest, register, text),
            _ => unreachable!("asked only of the frames of keys"),
        }
    }

    /// Where a key stands after one more byte: `cursor` is where it stood, `written` the bytes since the key frame
    /// `id` with the new one last. `None` if no unwritten key goes on with it.
    pub(super) fn read_key(&self, id: FrameId, cursor: Cursor, written: &[u8]) -> Option<Cursor> {
        let (series, rest, register, text) = self.key_parts(id);
        let terminal = self.key_terminal(series, rest);
        let next = terminal.next(cursor, *written.last()?)?;
        if self.keys_abound((series, rest, register), next) {
            return Some(next);
        }
        let prefix = [&self.texts.to_vec(text)[..], written].concat();
        self.unused_among(&self.used_keys(register), (series, rest), next, &prefix)
            .then_some(next)
    }

    /// The frame of a key that has gone on with these bytes.
    pub(super) fn key_frame(&self, id: FrameId, cursor: Cursor, written: &[u8]) -> FrameId {
        let (series, rest, register, text) = self.key_parts(id);
        let text = match register.repeated {
            // Which key it is makes no difference any more.
            true => NIL,
            false => self.add_text(text, written),
        };
        self.intern(FrameKey::Key {
            series,
            rest,
            register,
            cursor,
            text,
        })
    }

    pub(super) fn add_text(&self, text: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(text, |text, &byte| self.texts.push(text, byte))
    }

    /// Where a key in progress would run into keys that were written before: the shortest bytes behind which no
    /// unwritten key is left, one for each written key that it could still become. Where `fits` is false of what completes
    /// the written key, it may be left out if all of that is needed.
    pub(super) fn taken(&self, id: FrameId, fits: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let (series, rest, register, text) = self.key_parts(id);
        if self.all_keys_are_free(series, register) {
            return Vec::new();
        }
        let FrameKey::Key { cursor, .. } = self.get(id).key else {
            return Vec::new();
        };
        let terminal = self.key_terminal(series, rest);
        let prefix = self.texts.to_vec(text);
        let used = self.used_keys(register);
        let taken = self.nfa.series[series as usize].taken.behind(&prefix);
        let lefts = used.behind(&prefix).chain(taken);
        if terminal.is_endless_inside() {
            let fitting = lefts.filter(|left| fits(left) && terminal.matches_from(cursor, left));
            return fitting.map(<[u8]>::to_vec).collect();
        }
        let is_left = |left: &[u8]| {
            let at = read(terminal, cursor, left)?;
            let text = [&prefix[..], left].concat();
            Some(self.unused_among(&used, (series, rest), at, &text))
        };
        // Behind more of a key fewer are left.
        let shortest = |left: &[u8]| {
            terminal.matches_from(cursor, left).then_some(())?;
            let (mut least, mut most) = (1, left.len());
            while least < most {
                // Mostly something else is left up to the last byte.
                let length = if most == left.len() {
                    most - 1
                } else {
                    (least + most) / 2
                };
                match is_left(&left[..length])? {
                    true => least = length + 1,
                    false => most = length,
                }
            }
            Some(left[..most].to_vec())
        };
        lefts.filter_map(shortest).collect()
    }

    /// Whether a key that went on from the frame with these bytes may end there.
    pub(super) fn key_ends(&self, id: FrameId, cursor: Cursor, written: &[u8]) -> bool {
        let (series, _, register, text) = self.key_parts(id);
        if !self.key_terminal_of(id).is_accepting(cursor) {
            return false;
        }
        self.all_keys_are_free(series, register) || {
            let whole = [&self.texts.to_vec(text)[..], written].concat();
            !self.nfa.series[series as usize].is_taken(&whole) && !self.used_keys(register).contains(&whole)
        }
    }

    /// What completes the key of a frame, behind these bytes of it, to one that may not be written, in at most `longest`
    /// bytes; `None` if it follows a key that is not known.
    pub(super) fn unwritable_behind(
        &self,
        id: FrameId,
        written: &[u8],
        longest: usize,
    ) -> Option<Vec<Vec<u8>>> {
        let (series, _, register, text) = self.key_parts(id);
        if register.doubted {
            return None;
        }
        if self.all_keys_are_free(series, register) {
            return Some(Vec::new());
        }
        let prefix = [&self.texts.to_vec(text)[..], written].concat();
        let used = self.used_keys(register);
        let taken = self.nfa.series[series as usize].taken.behind(&prefix);
        Some(
            used.behind(&prefix)
                .chain(taken)
                .filter(|left| left.len() <= longest)
                .map(<[u8]>::to_vec)
                .collect(),
        )
    }

    /// The language of the keys of a key frame.
    pub(super) fn key_terminal_of(&self, id: FrameId) -> &Arc<Terminal> {
        let (series, rest, ..) = self.key_parts(id);
        self.key_terminal(series, rest)
    }

    /// The item behind a key.
    pub(super) fn item_of(&self, id: FrameId) -> FrameId {
        let (series, rest, ..) = self.key_parts(id);
        self.item_start(series, rest)
    }

    /// Where what stands behind a key begins. It may be nothing at all: then the key is the item.
    fn item_start(&self, series: u32, rest: u32) -> FrameId {
        let item = Callee::Rule(self.nfa.series[series as usize].rest[rest as usize].item);
        if self.analysis.is_nullable(item) {
            RETURN
        } else {
            self.start(item)
        }
    }
}

/// Where the terminal stands behind these bytes.
fn read(terminal: &Terminal, cursor: Cursor, bytes: &[u8]) -> Option<Cursor> {
    let mut bytes = bytes.iter();
    bytes.try_fold(cursor, |cursor, &byte| terminal.next(cursor, byte))
}
