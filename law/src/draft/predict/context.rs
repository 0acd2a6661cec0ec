//! The inputs and outputs of predictors: contexts, candidates and observations.

use crate::draft::{Origin, Text};

/// A place after a text and drafted tokens.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The accepted text.
    pub text: Text<'a>,
    /// The drafted tokens after it.
    pub path: &'a [u32],
    /// The [key](crate::draft::Constraint::key) of the constraint's state after both; `None` without a
    /// constraint.
    pub state: Option<u64>,
}

impl Context<'_> {
    /// Returns the tokens before the place, the last first.
    pub fn back(&self) -> impl Iterator<Item = u32> + '_ {
        let text = (self.text.answer.iter().rev()).chain(self.text.prompt.iter().rev());
        self.path.iter().rev().chain(text).copied()
    }

    /// Returns a hash of the last `length` tokens, which differs between contexts of different lengths;
    /// `None` if there are fewer.
    pub(super) fn suffix(&self, length: usize) -> Option<u64> {
        let mut hash = mixed(length as u64 + 1, 0);
        let mut taken = 0;
        for token in self.back().take(length) {
            hash = mixed(hash, token.into());
            taken += 1;
        }
        (taken == length).then_some(hash)
    }
}

/// Hashes two numbers into one such that all bits depend on all bits (the finaliser of SplitMix64).
pub(super) fn mixed(one: u64, other: u64) -> u64 {
    let mut mixed = one
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(other)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A token that may come next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The token.
    pub token: u32,
    /// The probability that it comes next, as far as the predictor knows.
    pub chance: f32,
    /// The source of the token.
    pub origin: Origin,
}

/// The model's row at a context, and the token drawn there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation<'a> {
    /// The likeliest tokens of its row with their probabilities before the mask, the likeliest first; empty
    /// if the row is not known, but only what was drawn.
    pub likely: &'a [(u32, f32)],
    /// The likeliest tokens that the constraint allows, with their probabilities among all that it allows.
    pub allowed: &'a [(u32, f32)],
    /// The token that was drawn there; `None` if the row belongs to a branch that was not taken.
    pub drawn: Option<u32>,
}
