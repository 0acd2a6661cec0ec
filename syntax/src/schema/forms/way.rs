//! The ways to satisfy a part of an array or object: goals, with the demands on the whole that each meets.

use lexiform_automata::grammar::Meets;

use super::goal::GoalId;

/// One way to satisfy a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) goal: GoalId,
    /// The demands that it meets, one bit for each.
    pub(crate) meets: Meets,
}

/// Returns the approximate number of bytes of the ways of one part.
pub(crate) fn bytes_of_ways(ways: &[Way]) -> usize {
    // The allocator rounds up.
    size_of_val(ways).next_multiple_of(16)
}

/// The most demands on the parts of one shape: each doubles the number of ways.
pub(crate) const MOST_WISHES: usize = 6;
