//! Series of which some key is written twice: lists whose items are not all different.
//!
//! Until a key has come again, the register knows the keys that were written, as where they must differ, and nothing is
//! forbidden but to run out of places. The last one is left to the keys that were written:
//!
//! ```text
//!   at most 3   "a"     any key, and one more place for it
//!               "b"     any key: there is a last place for "a" or "b"
//!               a word  "a" or "b", as far as it is written like them: a frame of words
//! ```
//!
//! Once a key has come again, the register forgets them all, and the series is a plain list with bounds.

use std::sync::Arc;

use super::frame::{Call, Calls, EdgeList, FrameId, FrameKey, Frames, RETURN};
use super::interner::NIL;
use super::nfa::{Nfa, SeriesPlan};
use super::series::Register;
use super::terminal::Terminal;
use crate::error::{Place, Problem, ProblemKind};
use crate::grammar::{Keys, SeriesOrder};

/// Refuses series whose keys repeat in a way that is not known here.
pub(super) fn check(nfa: &Nfa) -> Result<(), Problem> {
    let is_known = |plan: &SeriesPlan| {
        let keyed = plan.rest.iter().filter(|rest| rest.key.is_some());
        plan.order == SeriesOrder::Leading
            && plan.demands.is_empty()
            && plan.taken.is_empty()
            && keyed.into_iter().all(|rest| nfa.is_empty_rule(rest.item))
    };
    let mut repeating = nfa.series.iter().filter(|plan| plan.keys == Keys::Repeat);
    if repeating.all(is_known) {
        return Ok(());
    }
    let message =
        "a series whose keys repeat has another order, demands, taken keys, or items behind its keys";
    Err(Problem::new(ProblemKind::Unsupported, Place::Whole, message))
}

impl Nfa {
    /// Whether a rule has the empty word alone, as it was written.
    fn is_empty_rule(&self, rule: u32) -> bool {
        let rule = &self.rules[rule as usize];
        let edges = &self.nodes[rule.start as usize];
        edges
            .iter()
            .all(|edge| edge.label == super::nfa::Label::Empty && edge.to == rule.accept)
            && !edges.is_empty()
    }
}

impl SeriesPlan {
    /// Whether there are a key that can be written, and room to write it twice.
    pub(super) fn some_key_may_repeat(
        &self,
        usable: impl Fn(u32) -> bool,
        terminals: &[Option<Arc<Terminal>>],
    ) -> bool {
        let places = self.members.len() as u64 + 2;
        let mut keys = self.rest.iter().filter(|rest| usable(rest.item));
        keys.any(|rest| rest.key.is_some_and(|key| terminals[key as usize].is_some()))
            && self.max.is_none_or(|max| places <= max)
    }
}

impl Frames {
    /// Whether some key of a series must be written twice.
    pub(super) fn is_repeating(&self, series: u32) -> bool {
        self.nfa.series[series as usize].keys == Keys::Repeat
    }

    /// Whether what follows the key of a frame hangs on whether it was written before.
    pub(super) fn may_come_again(&self, id: FrameId) -> bool {
        match self.get(id).key {
            FrameKey::Key { series, register, .. } => self.is_repeating(series) && !register.repeated,
            _ => false,
        }
    }

    /// Whether a key has come again before that of a frame, so that it makes no difference which this is.
    pub(super) fn has_come_again(&self, id: FrameId) -> bool {
        self.key_parts(id).2.repeated
    }

    /// The items that may come next.
    pub(super) fn repeating_calls(&self, series: u32, register: Register) -> Calls {
        let plan = &self.nfa.series[series as usize];
        if plan.max.is_some_and(|max| register.count >= max) {
            return Calls::new();
        }
        let index = register.done as usize;
        if index < plan.members.len() {
            return match self.key_can_repeat(series, self.after_member(series, register, index, 0)) {
                true => self.member_calls(series, register, index),
                false => Calls::new(),
            };
        }
        // A new key needs a place behind it, to be written again.
        let new = register.repeated || plan.max.is_none_or(|max| register.count + 2 <= max);
        let mut calls = Calls::new();
        for (rest, index) in plan.rest.iter().zip(0..) {
            let open = match rest.key {
                Some(_) => new,
                None => self.key_can_repeat(series, self.after_rest(series, index, register)),
            };
            calls.extend(open.then(|| self.rest_call(series, register, index)).flatten());
        }
        calls.extend((!new).then(|| self.last_call(series, register)).flatten());
        calls
    }

    /// Whether there is room behind a register for a key to come again.
    fn key_can_repeat(&self, series: u32, register: Register) -> bool {
        let plan = &self.nfa.series[series as usize];
        let ahead = plan.members.len() as u64 - u64::from(register.done);
        let needed = match (register.repeated, register.used) {
            (true, _) => 0,
            (false, NIL) => ahead + 2,
            (false, _) => ahead + 1,
        };
        plan.max.is_none_or(|max| register.count + needed <= max)
    }

    /// The last place, where one of the keys comes again that were written.
    fn last_call(&self, series: u32, register: Register) -> Option<Call> {
        let words = self.used_keys(register);
        let words: Vec<Arc<[u8]>> = words.iter().map(Arc::from).collect();
        let after = Register {
            used: NIL,
            repeated: true,
            ..self.after_rest(series, 0, register)
        };
        (!words.is_empty()).then(|| Call {
            callee: self.words(&words, 0),
            then: self.series_frame(series, after),
        })
    }

    /// A register behind a key.
    pub(super) fn with_key_again(&self, register: Register, text: u32) -> Register {
        let known = self.keys.iter(register.used).any(|used| used == text);
        let repeated = register.repeated || known;
        let used = match repeated {
            true => NIL,
            false => self.keys.push(register.used, text),
        };
        Register {
            repeated,
            used,
            ..register
        }
    }

    fn words(&self, words: &[Arc<[u8]>], at: u32) -> FrameId {
        match words {
            [word] if word.len() == at as usize => RETURN,
            _ => self.intern(FrameKey::Words {
                words: words.into(),
                at,
            }),
        }
    }

    /// The bytes that go on with some of the words, in order, and where they lead.
    pub(super) fn edges_of_words(&self, words: &[Arc<[u8]>], at: u32) -> EdgeList {
        let longer = words.partition_point(|word| word.len() <= at as usize);
        let groups = words[longer..].chunk_by(|a, b| a[at as usize] == b[at as usize]);
        let edge = |group: &[Arc<[u8]>]| {
            let byte = group[0][at as usize];
            (byte, byte, self.words(group, at + 1))
        };
        groups.map(edge).collect()
    }
}

/// Whether one of the words ends here, and whether one goes on.
pub(super) fn ends_and_goes_on(words: &[Arc<[u8]>], at: u32) -> (bool, bool) {
    let length = |word: &Arc<[u8]>| word.len() == at as usize;
    (words.iter().any(length), !words.iter().all(length))
}
