//! Ways to satisfy a part of an array or object: goals, with the demands on the whole that each meets.

use lexiform_automata::grammar::Meets;

use super::goal::GoalId;

/// One way to satisfy a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) goal: GoalId,
    /// The demands that are met by it, a bit for each.
    pub(crate) meets: Meets,
}

/// About the bytes of the ways of one part.
pub(crate) fn bytes_of_ways(ways: &[Way]) -> usize {
    // The allocator rounds up.
    size_of_val(ways).next_multiple_of(16)
}

/// The most demands on the parts of one shape: the ways double with each.
pub(crate) const MOST_WISHES: usize = 6;
