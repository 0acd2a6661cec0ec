//! Choosers: the source of all randomness.

mod philox;

use super::Weight;
use philox::philox;

/// The decision that a choice makes; part of its [`Place`], so that two choices at one position are
/// independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// The block of 32 tokens that holds the token; a step of drawing from a wide row.
    Block,
    /// The token.
    Token,
    /// Survival of an attempt of the global law.
    Survive,
    /// One of the known continuations of a prefix, or none of them.
    Branch,
    /// The token that the drafter proposes. Every token drafted at one position has its own round: siblings,
    /// tokens below different nodes of a tree, and the draft of a later pass.
    Draft,
    /// Acceptance of a proposed token; the round is its number among its siblings, in the order of the
    /// trials.
    Accept,
    /// The token that replaces rejected ones.
    Residual,
    /// The block, for the drafter's proposal.
    DraftBlock,
    /// The block, for a token that replaces rejected ones.
    ResidualBlock,
    /// The group of 64 blocks; the first step of drawing a token from a very wide row.
    Group,
    /// The group, for the drafter's proposal.
    DraftGroup,
    /// The group, for a token that replaces rejected ones.
    ResidualGroup,
    /// The particles to copy; the attempt counts resamplings, the round counts the draws of each.
    Resample,
    /// The particle that becomes the answer.
    Pick,
    /// The position at which a Markov chain cuts its text; the attempt counts its steps.
    Cut,
    /// Acceptance of the text proposed to a Markov chain; the attempt counts its steps.
    Move,
}

/// The address of one choice inside a sequence. The same place gives the same draw, whatever was drawn
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of the attempt at the sequence; 0 if there is only one attempt.
    pub attempt: u32,
    /// The index of the token that is being drawn, counted from the first token of the answer.
    pub position: u32,
    /// The decision that is made.
    pub purpose: Purpose,
    /// The number of the choice among those with the same purpose and position; below 2²⁴.
    pub round: u32,
}

impl Place {
    /// The place of a token of an attempt.
    pub fn new(attempt: u32, position: u32) -> Self {
        Place {
            attempt,
            position,
            purpose: Purpose::Token,
            round: 0,
        }
    }

    /// Returns this place with another purpose.
    pub fn to(self, purpose: Purpose) -> Self {
        Place { purpose, ..self }
    }

    /// Returns the place of the choice of a block, for the token that is chosen here.
    pub fn block(self) -> Self {
        self.to(match self.purpose {
            Purpose::Draft => Purpose::DraftBlock,
            Purpose::Residual => Purpose::ResidualBlock,
            _ => Purpose::Block,
        })
    }

    /// Returns the place of the choice of a group of blocks, for the token that is chosen here.
    pub fn group(self) -> Self {
        self.to(match self.purpose {
            Purpose::Draft => Purpose::DraftGroup,
            Purpose::Residual => Purpose::ResidualGroup,
            _ => Purpose::Group,
        })
    }

    /// Returns this place with another round.
    pub fn round(self, round: u32) -> Self {
        Place { round, ..self }
    }
}

/// A source of choices; every random decision of this crate uses one.
pub trait Chooser<W: Weight> {
    /// Returns an index, drawn in proportion to the weights; never one whose weight is zero while another is
    /// positive. `weights` is not empty, has no negative entry, and has a positive sum.
    fn choose(&mut self, place: Place, weights: &[W]) -> usize;
}

/// A counter-based chooser: each choice is a function of the seed, the sequence and the place.
///
/// ```
/// use lexiform_law::{Chooser, Place, Seeded};
///
/// let place = Place::new(0, 7);
/// let mut one = Seeded::new(42, 0);
/// let mut other = Seeded::new(42, 0);
/// one.choose(Place::new(0, 6), &[1.0, 1.0]); // What was drawn before does not matter.
/// assert_eq!(one.choose(place, &[1.0; 1000]), other.choose(place, &[1.0; 1000]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeded {
    seed: u64,
    sequence: u32,
}

impl Seeded {
    /// Creates the chooser of the sequence with this index among those that share the seed (`n` answers to
    /// one request).
    pub fn new(seed: u64, sequence: u32) -> Self {
        Seeded { seed, sequence }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The index of the sequence among those that share the seed.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Returns a number in `[0, 1)` with 53 random bits.
    pub fn uniform(&self, place: Place) -> f64 {
        let purpose = (place.purpose as u32) << 24 | (place.round & 0x00FF_FFFF);
        let words = philox([place.position, place.attempt, self.sequence, purpose], self.seed);
        let bits = (u64::from(words[0]) << 32 | u64::from(words[1])) >> 11;
        bits as f64 * (0.5 / (1u64 << 52) as f64)
    }
}

impl Chooser<f64> for Seeded {
    fn choose(&mut self, place: Place, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        let mut left = self.uniform(place) * total;
        let mut last = 0;
        for (index, &weight) in weights.iter().enumerate() {
            if weight > 0.0 {
                if left < weight {
                    return index;
                }
                left -= weight;
                last = index;
            }
        }
        // Rounding can carry `left` past the end; the last possible index is then correct.
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_weights_are_never_chosen() {
        let mut chooser = Seeded::new(1, 0);
        for position in 0..2000 {
            let index = chooser.choose(Place::new(0, position), &[0.0, 1e-300, 0.0, 1e-300, 0.0]);
            assert!(index == 1 || index == 3);
        }
    }

    #[test]
    fn every_part_of_the_place_matters() {
        let place = Place::new(3, 5);
        let base = Seeded::new(9, 1).uniform(place);
        let others = [
            Seeded::new(10, 1).uniform(place),
            Seeded::new(9, 2).uniform(place),
            Seeded::new(9, 1).uniform(Place::new(4, 5)),
            Seeded::new(9, 1).uniform(Place::new(3, 6)),
            Seeded::new(9, 1).uniform(place.to(Purpose::Accept)),
            Seeded::new(9, 1).uniform(place.round(1)),
        ];
        assert!(others.iter().all(|&other| other != base));
        assert!((0.0..1.0).contains(&base));
    }
}
