//! Frames and configurations between which no token can tell.
//!
//! An object with open keys is in another state behind each of its members, since it remembers which keys it has. And yet
//! what may come next is the same: no token ends a value, separates it from the next member and writes that member's key.
//! So each state has one that is *like* it, in which only what tokens can see is remembered, and masks are found for those.
//! Of the masks that had been made of texts of JSON, three in four had been there before, in another state.
//!
//! ```text
//!   {"name": "x", "id": 1, "tags": [│        written: name, id     ┐
//!   {"name": "x", "kind": 2, "tags": [│      written: name, kind   ├─ like: written: whatever is no token
//!   {"tags": [│                              written: –            ┘
//! ```
//!
//! What tokens can see is asked of the vocabulary (`Sight`):
//!
//! - A key that was used is seen by tokens that hold all of it, or complete it if it is being written. Others are
//!   forgotten, where more keys than any number of them are left.
//! - Behind an item, a member is seen by tokens that hold something of its separator, and later the byte with which members
//!   open and the one that follows it in this one. Of all that are not seen it is enough to know whether some may be
//!   written, and whether one must be.
//! - Where other keys may begin like the key of a member, that it may be written is not seen before it ends.
//!
//! And a rule in progress is like every other that goes on with the same (`tails`).
//!
//! States are compared by this for masks alone; texts are read in the states that they lead to.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::behind::Behind;
use super::bytes::ByteSet;
use super::frame::{FrameId, FrameKey, Frames};
use super::interner::NIL;
use super::key_set::KeySet;
use super::nfa::{Callee, Label, SeriesPlan};
use super::series::{Bits, Register, has_bit, with_bit};
use super::stack::ConfigId;
use super::tails::Tails;
use super::terminal::{Cursor, Terminal};
use crate::grammar::SeriesOrder;

/// What tokens hold.
pub(crate) trait Sight {
    /// The bytes that stand in some token directly behind `opening`, where one of `before` stands earlier.
    fn behind(&self, before: &ByteSet, opening: u8) -> ByteSet;

    /// All texts within tokens that begin and end with these bytes, at different places; `None` if they are very many.
    fn texts(&self, opening: u8, closing: u8) -> Option<Arc<KeySet>>;

    /// How many bytes of these some token has at most.
    fn most(&self, bytes: &ByteSet) -> usize;

    /// Whether some token begins with these bytes.
    fn begins(&self, text: &[u8]) -> bool;
}

/// What tokens cannot see of a series.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    /// The keys that tokens hold; `None` where all that were used matter.
    keys: Option<Arc<KeySet>>,
    /// The members that are not seen from behind an item.
    behind_item: Bits,
    /// Those of them that are not seen from anywhere before their keys.
    anywhere: Bits,
}

impl Hidden {
    /// Whether a member is not seen from behind an item.
    pub(super) fn hides_behind_items(&self, member: usize) -> bool {
        has_bit(&self.behind_item, member)
    }

    /// Whether tokens hold none of these keys, so far as is known.
    pub(super) fn holds_none_of(&self, keys: &KeySet) -> bool {
        let held = self.keys.as_ref();
        held.is_some_and(|held| !keys.iter().any(|key| held.contains(key)))
    }
}

/// What frames have in common of which the first stands for all.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// A key in progress, without its text.
    Key(FrameKey),
    /// The tails with which a rule may go on, in order.
    Tails(Box<[u32]>),
    /// A series behind an item.
    Behind(Behind),
}

/// Rules in more places at once than this are not compared with others, and configurations of more frames: they are seldom
/// like one, and soon a choice is made.
pub(super) const MANY: usize = 64;

/// It is not known yet what is like this.
pub(super) const UNKNOWN: u32 = u32::MAX;

impl Frames {
    /// A frame behind which the same tokens may come, below the same callers.
    pub(super) fn like(&self, id: FrameId, sight: &impl Sight) -> FrameId {
        let known = self.get(id).like.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return known;
        }
        let like = match self.get(id).key.clone() {
            FrameKey::Series(series, register) if self.forgets(series, register) && register.started => {
                let hidden = self.hidden(series, sight);
                let members = match register.separated {
                    true => &hidden.anywhere,
                    false => &hidden.behind_item,
                };
                let register = self.without_members(series, register, (members, &hidden.anywhere));
                let register = self.without_keys(register, hidden);
                match register.separated {
                    true => self.intern(FrameKey::Series(series, register)),
                    false => self.like_behind(series, register, hidden),
                }
            }
            FrameKey::Key {
                series,
                rest,
                register,
                cursor,
                text,
            } if self.forgets(series, register) => {
                self.like_key((series, rest, register), cursor, text, sight)
            }
            FrameKey::Choice(at) if self.forgets(at.series, at.register) && at.node != 0 => {
                let hidden = self.hidden(at.series, sight);
                let mut members = hidden.behind_item.clone();
                for member in self.members_at(&at) {
                    clear_bit(&mut members, member as usize);
                }
                let register = self.without_members(at.series, at.register, (&members, &hidden.anywhere));
                let register = self.without_keys(register, hidden);
                self.intern(FrameKey::Choice(self.choosing_with(&at, register)))
            }
            FrameKey::Rule { rule, nodes } if self.analysis.recursive_group[rule as usize].is_none() => {
                self.like_rule(id, rule, &nodes)
            }
            _ => id,
        };
        self.get(like).like.store(like, Ordering::Relaxed);
        self.get(id).like.store(like, Ordering::Relaxed);
        like
    }

    /// The same as a call and what comes behind it, for frames that can do nothing but that: where one member is left, its
    /// rule, and where the terminal that is called may be empty, that terminal at its beginning.
    pub(super) fn unfolded(&self, id: FrameId) -> Option<(FrameId, FrameId)> {
        match &self.get(id).key {
            FrameKey::Choice(at) if at.node != 0 => {
                let mut ways = self.open_ways(*at);
                let (way, node) = ways.next()?;
                ways.next()
                    .is_none()
                    .then(|| (self.standing(way.rule, node), self.behind_member(at, &way)))
            }
            FrameKey::Rule { rule, nodes } if self.analysis.recursive_group[*rule as usize].is_none() => {
                let (from, terminal, to) = nodes.iter().find_map(|&node| self.empty_word(node))?;
                let begun = FrameKey::Terminal(terminal, self.terminal(terminal).start());
                let is_all = self.closure(&[from])[..] == nodes[..];
                is_all.then(|| (self.intern(begun), self.rule_frame(*rule, &[to])))
            }
            _ => None,
        }
    }

    /// The terminal that is all a node calls, if it may be empty, with both nodes.
    fn empty_word(&self, node: u32) -> Option<(u32, u32, u32)> {
        match &self.nfa.nodes[node as usize][..] {
            [edge] => match edge.label {
                Label::Call(called @ Callee::Terminal(terminal)) if self.analysis.is_nullable(called) => {
                    Some((node, terminal, edge.to))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The first frame of a rule that goes on like this one.
    fn like_rule(&self, id: FrameId, rule: u32, nodes: &[u32]) -> FrameId {
        if nodes.len() > MANY {
            return id;
        }
        let tail = |&node: &u32| self.tail(rule, node);
        let mut tails: Vec<u32> = nodes.iter().map(tail).collect();
        tails.sort_unstable();
        let class = Class::Tails(tails.into());
        *self.first_like.entry(class).or_insert(id)
    }

    /// What is left of a rule at its beginning.
    pub(super) fn tail_of_rule(&self, rule: u32) -> u32 {
        self.tail(rule, self.nfa.rules[rule as usize].start)
    }

    fn tail(&self, rule: u32, node: u32) -> u32 {
        let tails = self.tails.get_or_init(|| Tails::new(self.nfa.nodes.len()));
        tails.of(&self.nfa, &self.analysis, rule, node)
    }

    /// The pairs of a configuration, but for keys in progress of which tokens see nothing that is not seen of another key: as
    /// long as they do not end, any others may go on like them.
    pub(super) fn without_covered(
        &self,
        pairs: &[(FrameId, ConfigId)],
        sight: &impl Sight,
    ) -> SmallVec<[(FrameId, ConfigId); 2]> {
        let mut keys = pairs.iter().filter_map(|&(frame, _)| match self.get(frame).key {
            FrameKey::Key {
                series, rest, cursor, ..
            } => Some((self.key_terminal(series, rest), cursor)),
            _ => None,
        });
        let key = (pairs.len() > 1).then(|| keys.next()).flatten();
        let is_covered = |frame: FrameId| key.is_some_and(|key| self.is_covered(frame, key, sight));
        pairs
            .iter()
            .filter(|&&(frame, _)| !is_covered(frame))
            .copied()
            .collect()
    }

    /// Whether all that a frame reads is fixed text that goes on like endlessly many keys, up to a byte that no token reaches.
    fn is_covered(
        &self,
        id: FrameId,
        (terminal, cursor): (&Arc<Terminal>, Cursor),
        sight: &impl Sight,
    ) -> bool {
        let Some((_, closing)) = terminal.edges().filter(|_| terminal.is_infinite(cursor)) else {
            return false;
        };
        let is_far = |rule: u32, node: u32| {
            let left = self.text_left((rule, node), (terminal, cursor), closing);
            left.is_some_and(|left| !sight.begins(&left))
        };
        match &self.get(id).key {
            FrameKey::Rule { rule, nodes } => matches!(nodes[..], [node] if is_far(*rule, node)),
            FrameKey::Choice(at) => {
                let mut ways = self.open_ways(*at);
                ways.all(|(way, node)| is_far(way.rule, node))
            }
            _ => false,
        }
    }

    /// Whether nothing of a series is counted any more.
    pub(super) fn forgets(&self, series: u32, register: Register) -> bool {
        let plan = &self.nfa.series[series as usize];
        plan.max.is_none()
            && register.count >= plan.min
            && !plan.has_demands()
            && !self.is_repeating(series)
            && !register.doubted
    }

    fn like_key(
        &self,
        (series, rest, register): (u32, u32, Register),
        cursor: Cursor,
        text: u32,
        sight: &impl Sight,
    ) -> FrameId {
        let hidden = self.hidden(series, sight);
        let register = self.without_members(series, register, (&hidden.behind_item, &hidden.anywhere));
        let key = |register, text| FrameKey::Key {
            series,
            rest,
            register,
            cursor,
            text,
        };
        let Some(held) = &hidden.keys else {
            return self.intern(key(register, text));
        };
        let begun = self.texts.to_vec(text);
        let used = self.used_keys(register);
        if text != NIL && used.behind(&begun).any(|left| sight.begins(left)) {
            return self.intern(key(register, text));
        }
        let register = self.without_keys(register, hidden);
        let taken = &self.nfa.series[series as usize].taken;
        let is_taken = || taken.behind(&begun).any(|left| sight.begins(left));
        if text == NIL || held.behind(&begun).next().is_some() || is_taken() {
            return self.intern(key(register, text));
        }
        // Nothing hangs on which text it is: the first one stands for all.
        let like = || self.intern(key(register, text));
        let class = Class::Key(key(register, NIL));
        *self.first_like.entry(class).or_insert_with(like)
    }

    /// The register with only those used keys that tokens hold.
    fn without_keys(&self, register: Register, hidden: &Hidden) -> Register {
        let used = hidden
            .keys
            .as_ref()
            .map_or(register.used, |held| self.held_keys(register.used, held));
        Register { used, ..register }
    }

    /// Those of a list of keys that tokens hold, which all series of a grammar see alike. A list is mostly one that is known
    /// with one key more.
    fn held_keys(&self, list: u32, held: &KeySet) -> u32 {
        let mut longer = Vec::new();
        let mut at = list;
        let mut found = loop {
            if let Some(known) = self.held.get(&at) {
                break *known;
            }
            let Some((before, text)) = self.keys.split_last(at) else {
                break NIL;
            };
            longer.push((at, text));
            at = before;
        };
        for (list, text) in longer.into_iter().rev() {
            if held.contains(&self.texts.to_vec(text)) {
                found = self.keys.push(found, text);
            }
            self.held.insert(list, found);
        }
        found
    }

    /// The register in which all of these members are written, but for one that must be if one of them must be, and for
    /// one that may be if that is true of one that is not hidden everywhere.
    fn without_members(
        &self,
        series: u32,
        register: Register,
        (members, anywhere): (&Bits, &Bits),
    ) -> Register {
        let plan = &self.nfa.series[series as usize];
        if plan.order != SeriesOrder::Any || members.iter().all(|&word| word == 0) {
            return register;
        }
        let written = self.written.get(register.done);
        let mut like: Vec<u64> = written.to_vec();
        like.resize(members.len().max(written.len()), 0);
        let (mut first, mut is_left) = ([None; 2], [false; 2]);
        for index in (0..plan.members.len()).filter(|&index| has_bit(members, index)) {
            let required = plan.members[index].required;
            if !required && has_bit(anywhere, index) {
                like[index / 64] |= 1 << (index % 64);
                continue;
            }
            let kind = usize::from(required);
            first[kind].get_or_insert(index);
            is_left[kind] |= !has_bit(written, index);
            like[index / 64] |= 1 << (index % 64);
        }
        for (first, _) in first.into_iter().zip(is_left).filter(|&(_, left)| left) {
            first.inspect(|&first| clear_bit(&mut like, first));
        }
        // As sets of written members are kept everywhere: without words of zeros at the end.
        while like.last() == Some(&0) {
            like.pop();
        }
        Register {
            done: self.written.intern(like.into()),
            ..register
        }
    }

    fn hidden(&self, series: u32, sight: &impl Sight) -> &Hidden {
        self.hidden[series as usize].get_or_init(|| self.find_hidden(series, sight))
    }

    fn find_hidden(&self, series: u32, sight: &impl Sight) -> Hidden {
        let plan = &self.nfa.series[series as usize];
        let keys = self.held_texts(series, plan, sight);
        let none: Bits = vec![0; plan.members.len().div_ceil(64)].into();
        let (mut behind_item, mut anywhere) = (none.clone(), none);
        let unseen = self.unseen_behind_items(series, plan, sight);
        for (index, member) in plan.members.iter().enumerate() {
            let mut rules = member.ways.iter().map(|&(rule, _)| rule);
            if rules.all(|rule| self.begins_like_a_key(series, plan, rule, sight)) {
                anywhere = with_bit(&anywhere, index);
                behind_item = with_bit(&behind_item, index);
            } else if unseen(index as u32) {
                behind_item = with_bit(&behind_item, index);
            }
        }
        Hidden {
            keys,
            behind_item,
            anywhere,
        }
    }

    /// The keys that tokens hold, where the keys of a series never run out and all begin and end with the same bytes.
    fn held_texts(&self, series: u32, plan: &SeriesPlan, sight: &impl Sight) -> Option<Arc<KeySet>> {
        if plan.rest.is_empty() || self.capacities[series as usize].is_some() {
            return None;
        }
        let mut edges = Vec::new();
        for rest in &plan.rest {
            let terminal = self.terminal(rest.key?);
            edges.push(terminal.edges().filter(|_| terminal.is_endless_inside())?);
        }
        edges.dedup();
        match edges[..] {
            [(opening, closing)] if self.are_keys_alike((opening, closing)) => sight.texts(opening, closing),
            _ => None,
        }
    }

    /// Which keys are held is remembered by their lists, so that all series have to mean the same by it.
    fn are_keys_alike(&self, edges: (u8, u8)) -> bool {
        *self.key_edges.get_or_init(|| edges) == edges
    }

    /// Which members are not seen from behind an item.
    fn unseen_behind_items(
        &self,
        series: u32,
        plan: &SeriesPlan,
        sight: &impl Sight,
    ) -> impl Fn(u32) -> bool {
        let choice = self.choice(series);
        let separator = plan.separator.filter(|_| plan.order == SeriesOrder::Any);
        let seen = separator
            .filter(|&rule| !self.analysis.is_nullable(Callee::Rule(rule)))
            .zip(choice.opening())
            .and_then(|(separator, opening)| {
                let first = self.first_bytes(separator)?;
                Some(choice.members_behind(opening, &sight.behind(&first, opening)))
            });
        move |member| seen.as_ref().is_some_and(|seen| !seen.contains(&member))
    }

    /// The bytes with which the words of a rule begin; `None` if that is no matter of bytes alone.
    fn first_bytes(&self, rule: u32) -> Option<ByteSet> {
        let start = self.start(Callee::Rule(rule));
        self.only_reads(start).then(|| *self.bytes(start))
    }

    /// Whether endlessly many other keys go on like the key of a rule up to its last byte, and no token holds it.
    fn begins_like_a_key(&self, series: u32, plan: &SeriesPlan, rule: u32, sight: &impl Sight) -> bool {
        if plan.order != SeriesOrder::Any || self.capacities[series as usize].is_some() {
            return false;
        }
        plan.rest.iter().filter_map(|rest| rest.key).any(|key| {
            let terminal = self.terminal(key);
            let Some((opening, closing)) = terminal.edges().filter(|_| terminal.is_endless_inside()) else {
                return false;
            };
            let held = sight.texts(opening, closing);
            let start = self.nfa.rules[rule as usize].start;
            let key = self.text_left((rule, start), (terminal, terminal.start()), closing);
            key.zip(held)
                .is_some_and(|(key, held)| key[0] == opening && !held.contains(&key))
        })
    }

    /// The text with which all words go on from a node of a rule, up to the first byte with which keys close; `None` if that is
    /// not fixed, or endlessly many keys do not go on like it.
    fn text_left(
        &self,
        (rule, mut node): (u32, u32),
        (terminal, mut cursor): (&Terminal, Cursor),
        closing: u8,
    ) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let [edge] = &self.nfa.nodes[node as usize][..] else {
                return None;
            };
            let Label::Bytes(byte, last) = edge.label else {
                return None;
            };
            if byte != last || node == self.nfa.rules[rule as usize].accept {
                return None;
            }
            let is_first = text.is_empty() && cursor == terminal.start();
            text.push(byte);
            node = edge.to;
            if byte == closing && !is_first {
                return Some(text);
            }
            cursor = terminal
                .next(cursor, byte)
                .filter(|&next| terminal.is_infinite(next))?;
        }
    }
}

fn clear_bit(bits: &mut [u64], index: usize) {
    if let Some(word) = bits.get_mut(index / 64) {
        *word &= !(1 << (index % 64));
    }
}
