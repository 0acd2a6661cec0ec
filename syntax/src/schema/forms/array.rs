//! Sets of arrays: goals by place, a goal for the additional items, counts, and demands on *some* items.

use crate::schema::node::NodeId;
use lexiform_automata::grammar::Demand as Count;

use super::goal::GoalId;
use super::way::{Way, bytes_of_ways};

/// A set of arrays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Array {
    /// The ways of the leading items.
    pub(crate) prefix: Vec<Vec<Way>>,
    /// The ways of the items after them.
    pub(crate) additional: Vec<Way>,
    /// Items that may be used at most once each, at any place after the prefix.
    pub(crate) distinct: Vec<GoalId>,
    /// The schema that demands that no two items after the prefix be equal, if there is one.
    pub(crate) unique: Option<NodeId>,
    /// The texts of the values in the prefix, in order, if the items after it must differ from them.
    pub(crate) taken: Vec<Box<[u8]>>,
    /// The demands on how many items satisfy something.
    pub(crate) demands: Vec<Count>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
}

impl Array {
    /// Returns the approximate number of bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let places = self.prefix.iter().chain([&self.additional]);
        let taken = self.taken.iter().map(|text| size_of::<Box<[u8]>>() + text.len());
        size_of::<Array>()
            + size_of_val(&self.prefix[..])
            + size_of_val(&self.distinct[..])
            + places.map(|ways| bytes_of_ways(ways)).chain(taken).sum::<usize>()
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = GoalId> {
        // Unreachable places have no parts.
        let places = self.prefix.iter().chain([&self.additional]);
        let reached = self
            .max
            .map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        let ways = places.take(reached).flatten().map(|way| way.goal);
        ways.chain(self.distinct.iter().copied())
    }
}
