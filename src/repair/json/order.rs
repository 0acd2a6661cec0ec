//! Determines the order in which a grammar accepts the keys of an object.
//!
//! A grammar may require keys in the order of its schema. Keys are tested two at a time: whether the second
//! may come after the first, and the first after the second. Keys that may come in either order, or not at
//! all, keep the order in which they were written.

use super::read::Member;
use super::write::{Slot, Writer};
use crate::repair::task::RepairError;

/// The most keys that are sorted; if there are more, each keeps its place.
const MOST_KEYS: usize = 1_000;

impl Writer<'_> {
    /// Returns the indices of the members in the order in which they are to be written, right after the
    /// bracket that opens the object.
    pub(super) fn ordered(&mut self, members: &[Member]) -> Result<Vec<usize>, RepairError> {
        let given: Vec<usize> = (0..members.len()).collect();
        match members.len() {
            2..=MOST_KEYS => self.sorted(members, &given),
            _ => Ok(given),
        }
    }

    /// Merge sort. It recurses on halves, so its depth is at most the number of bits of the length.
    fn sorted(&mut self, members: &[Member], given: &[usize]) -> Result<Vec<usize>, RepairError> {
        if given.len() < 2 {
            return Ok(given.to_vec());
        }
        let (before, behind) = given.split_at(given.len() / 2);
        let before = self.sorted(members, before)?;
        let behind = self.sorted(members, behind)?;
        let (mut first, mut second) = (before.into_iter().peekable(), behind.into_iter().peekable());
        let mut sorted = Vec::with_capacity(given.len());
        while let (Some(&one), Some(&other)) = (first.peek(), second.peek()) {
            let is_swapped = !self.may_follow(&members[one], &members[other])?
                && self.may_follow(&members[other], &members[one])?;
            sorted.extend(if is_swapped { second.next() } else { first.next() });
        }
        sorted.extend(first.chain(second));
        Ok(sorted)
    }

    /// Checks whether a key may come after another one and its value.
    fn may_follow(&mut self, earlier: &Member, later: &Member) -> Result<bool, RepairError> {
        let mark = self.mark();
        let may = self.key(earlier, 0..0, Slot::First)?
            && self.complete(None)?
            && self.key(later, 0..0, Slot::Later)?;
        self.back_to(mark);
        Ok(may)
    }
}
