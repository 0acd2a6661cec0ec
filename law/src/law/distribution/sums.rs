//! Sums of weights by block, by group of blocks, and over the whole row.
//!
//! ```text
//!   tokens   │ 32 │ 32 │ … 64 blocks │ 32 │ 32 │ … 64 blocks │ …
//!   blocks     .3   0    …             .1   .2   …
//!   groups     1.7                     .9                      …      a draw: one group, one block of it, one token of that
//! ```
//!
//! Every sum adds its terms from the first to the last, so that any implementation with this order gets the
//! same bits. For a row of 128,000 tokens the longest chain of additions is a group, where a single sum over
//! all blocks would be 4,000 additions in sequence.

use crate::law::{Chooser, Place};

/// The number of tokens of a block.
pub(in crate::law) const BLOCK: usize = 32;
/// The number of blocks of a group.
const GROUP: usize = 64;

/// The sums of a row, or of a part of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// The sum of every 32 tokens.
    pub(super) blocks: Vec<f64>,
    /// The sum of every 64 blocks.
    groups: Vec<f64>,
    /// The sum of all groups.
    pub(super) total: f64,
}

impl Sums {
    /// Computes the sums over these blocks.
    pub(super) fn of(blocks: Vec<f64>) -> Self {
        let groups: Vec<f64> = blocks.chunks(GROUP).map(|group| group.iter().sum()).collect();
        let total = groups.iter().sum();
        Sums {
            blocks,
            groups,
            total,
        }
    }

    /// Returns the total without a block. The other blocks of its group are summed again, because a
    /// difference would lose its digits if the block has nearly everything.
    pub(super) fn without(&self, block: usize) -> f64 {
        let own = block / GROUP;
        let (first, end) = (own * GROUP, self.blocks.len().min(own * GROUP + GROUP));
        let others = || (first..end).filter(|&other| other != block);
        let groups = self.groups.iter().enumerate();
        groups
            .map(|(group, &sum)| match group == own {
                true => others()
                    .map(|other| self.blocks[other])
                    .fold(0.0, |sum, other| sum + other),
                false => sum,
            })
            .sum()
    }

    /// Draws a block in proportion to its sum. If there is only one group, or one block in it, no random
    /// number is drawn for it.
    pub(super) fn choose<C: Chooser<f64> + ?Sized>(&self, place: Place, chooser: &mut C) -> usize {
        let group = match self.groups.len() {
            0 | 1 => 0,
            _ => chooser.choose(place.group(), &self.groups),
        };
        let first = group * GROUP;
        let blocks = &self.blocks[first..self.blocks.len().min(first + GROUP)];
        match blocks.len() {
            0 | 1 => first,
            _ => first + chooser.choose(place.block(), blocks),
        }
    }
}
