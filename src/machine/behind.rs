//! Series that go on alike behind an item.
//!
//! Behind the value of a member tokens see the separator, the quote that opens the next key, and no more of members that
//! are hidden there (`like`). Of an object with only such members left all that is seen is whether it may end and whether it
//! may go on, whichever object it is:
//!
//! ```text
//!   {"a": 1│          a of a, b, c is written                    ┐
//!   {"a": 1, "d": 2│  a and d of a, d, e                         ├─ may end, may go on
//!   {"x": {"y": 1│    y of y, z, below other callers             ┘
//! ```
//!
//! Other keys are seen beyond their quotes. Two series with the same language of other keys and the same values behind them
//! differ in the keys that they do not allow there, and these are seen if some token holds one of them whole.

use super::frame::{FrameId, FrameKey, Frames};
use super::like::{Class, Hidden};
use super::series::{Register, has_bit};
use crate::grammar::SeriesOrder;

/// What tokens see of a series behind an item.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Behind {
    separator: Option<u32>,
    may_end: bool,
    /// The byte with which the keys of members begin, if some are left.
    opening: Option<u8>,
    /// The other keys: the terminal of each, and the tail that begins the rule of what follows it.
    rest: Box<[(u32, u32)]>,
    /// Those of them that were used and are held by tokens.
    used: u32,
}

impl Frames {
    /// The frame that stands for all series which tokens cannot tell from this one behind an item, where its register is the
    /// one that stands for those of this series.
    pub(super) fn like_behind(&self, series: u32, register: Register, hidden: &Hidden) -> FrameId {
        let frame = self.intern(FrameKey::Series(series, register));
        match self.seen_behind(series, register, hidden) {
            Some(behind) => *self.first_like.entry(Class::Behind(behind)).or_insert(frame),
            None => frame,
        }
    }

    /// `None` if more is seen.
    fn seen_behind(&self, series: u32, register: Register, hidden: &Hidden) -> Option<Behind> {
        let plan = &self.nfa.series[series as usize];
        if plan.order != SeriesOrder::Any {
            return None;
        }
        let written = self.written.get(register.done);
        let mut left = (0..plan.members.len())
            .filter(|&index| !has_bit(written, index))
            .peekable();
        let opening = match left.peek() {
            Some(_) => Some(self.choice(series).opening()?),
            None => None,
        };
        if !left.all(|index| hidden.hides_behind_items(index)) {
            return None;
        }
        let rest = plan.rest.iter();
        let rest = rest.map(|rest| Some((rest.key?, self.tail_of_rule(rest.item))));
        let rest: Option<Box<[_]>> = rest.collect();
        let is_free = || hidden.holds_none_of(&plan.taken);
        (plan.rest.is_empty() || is_free()).then_some(Behind {
            separator: plan.separator,
            may_end: self.series_may_end(series, register),
            opening,
            rest: rest?,
            used: register.used,
        })
    }
}
