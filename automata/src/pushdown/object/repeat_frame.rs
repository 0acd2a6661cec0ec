//! Series of which some key is written twice: lists whose items are not all different.
//!
//! Until a key has come again, the progress knows the keys that were written, as where they must differ, and nothing is
//! forbidden but to run out of places. The last one is left to the keys that were written:
//!
//! ```text
//!   at most 3   "a"     any key, and one more place for it
//!               "b"     any key: there is a last place for "a" or "b"
//!               a word  "a" or "b", as far as it is written like them: a frame of words
//! ```
//!
//! Once a key has come again, the progress forgets them all, and the series is a plain list with bounds.

use std::sync::Arc;

use super::progress::Progress;
use crate::grammar::Keys;
use crate::pushdown::frame::{Call, Calls, EdgeList, FrameId, FrameKey, Frames, RETURN};
use crate::pushdown::intern::interner::NIL;

impl Frames {
    /// Whether some key of a series must be written twice.
    pub(crate) fn is_repeating(&self, series: u32) -> bool {
        self.nfa.series[series as usize].keys == Keys::Repeat
    }

    /// Whether what follows the key of a frame depends on whether it was written before.
    pub(crate) fn may_come_again(&self, id: FrameId) -> bool {
        match self.get(id).key {
            FrameKey::Key { series, progress, .. } => self.is_repeating(series) && !progress.repeated,
            _ => false,
        }
    }

    /// Whether a key has come again before that of a frame, so that it makes no difference which this is.
    pub(crate) fn has_come_again(&self, id: FrameId) -> bool {
        self.key_parts(id).2.repeated
    }

    /// The items that may come next.
    pub(crate) fn repeating_calls(&self, series: u32, progress: Progress) -> Calls {
        let plan = &self.nfa.series[series as usize];
        if plan.max.is_some_and(|max| progress.count >= max) {
            return Calls::new();
        }
        let index = progress.done as usize;
        if index < plan.members.len() {
            return match self.key_can_repeat(series, self.after_member(series, progress, index, 0)) {
                true => self.member_calls(series, progress, index),
                false => Calls::new(),
            };
        }
        // A new key needs a place after it, to be written again.
        let new = progress.repeated || plan.max.is_none_or(|max| progress.count + 2 <= max);
        let mut calls = Calls::new();
        for (rest, index) in plan.rest.iter().zip(0..) {
            let open = match rest.key {
                Some(_) => new,
                None => self.key_can_repeat(series, self.after_rest(series, index, progress)),
            };
            calls.extend(open.then(|| self.rest_call(series, progress, index)).flatten());
        }
        calls.extend((!new).then(|| self.last_call(series, progress)).flatten());
        calls
    }

    /// Whether there is room after a progress for a key to come again.
    fn key_can_repeat(&self, series: u32, progress: Progress) -> bool {
        let plan = &self.nfa.series[series as usize];
        let ahead = plan.members.len() as u64 - u64::from(progress.done);
        let needed = match (progress.repeated, progress.used) {
            (true, _) => 0,
            (false, NIL) => ahead + 2,
            (false, _) => ahead + 1,
        };
        plan.max.is_none_or(|max| progress.count + needed <= max)
    }

    /// The last place, where one of the keys comes again that were written.
    fn last_call(&self, series: u32, progress: Progress) -> Option<Call> {
        let words = self.used_keys(progress);
        let words: Vec<Arc<[u8]>> = words.iter().map(Arc::from).collect();
        let after = Progress {
            used: NIL,
            repeated: true,
            ..self.after_rest(series, 0, progress)
        };
        (!words.is_empty()).then(|| Call {
            callee: self.words(&words, 0),
            then: self.series_frame(series, after),
        })
    }

    /// A progress after a key.
    pub(crate) fn with_key_again(&self, progress: Progress, text: u32) -> Progress {
        let known = self.keys.iter(progress.used).any(|used| used == text);
        let repeated = progress.repeated || known;
        let used = match repeated {
            true => NIL,
            false => self.keys.push(progress.used, text),
        };
        Progress {
            repeated,
            used,
            ..progress
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
    pub(crate) fn edges_of_words(&self, words: &[Arc<[u8]>], at: u32) -> EdgeList {
        let longer = words.partition_point(|word| word.len() <= at as usize);
        let groups = words[longer..].chunk_by(|a, b| a[at as usize] == b[at as usize]);
        let edge = |group: &[Arc<[u8]>]| {
            let byte = group[0][at as usize];
            (byte, byte, self.words(group, at + 1))
        };
        groups.map(edge).collect()
    }
}
