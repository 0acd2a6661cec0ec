//! Draws from rows of logits on a card, and what comes home of each row.
//!
//! The kernels of `draw.cu` add, multiply and choose in the order of the library's law, so that a token drawn there is the one
//! that [`Distribution`](lexiform::law::Distribution) draws from the same row, and every number that is told of it is the same
//! to the last bit. Held by `engine/tests/kernels/draws.rs`, on the processor.

use super::node::{Argument, Node, Place};
use super::shapes::{DRAWN_BYTES, kernel};
use lexiform::law::Drawn;

/// Where the rows of a draw lie, and what is asked of each.
#[derive(Clone, Copy, Debug)]
pub struct Draw<B> {
    /// `f32` `[rows, width]`; columns that are no tokens hold minus infinity.
    pub logits: Place<B>,
    /// `f32` `[rows]`, written.
    pub peaks: Place<B>,
    /// `f64` `[rows, blocks]`, written.
    pub whole: Place<B>,
    /// `f64` `[rows, blocks]`, written.
    pub allowed: Place<B>,
    /// `u32` `[masks, blocks]`: bit `t % 32` of word `t / 32` allows token `t`.
    pub masks: Place<B>,
    /// `i32` `[rows]`: the mask of each row; below 0, everything is allowed.
    pub mask_of: Place<B>,
    /// `f64` `[rows]`: 1 over the temperature.
    pub scales: Place<B>,
    /// `u64` `[rows]`.
    pub seeds: Place<B>,
    /// `u32` `[rows, 3]`: the position, the attempt, the number of the sequence among those of its seed.
    pub places: Place<B>,
    /// [`DRAWN_BYTES`] each, written.
    pub out: Place<B>,
    /// Logits of a row, [`MOST_DRAW_WIDTH`](super::shapes::MOST_DRAW_WIDTH) at most.
    pub width: usize,
    /// How many rows.
    pub rows: usize,
}

impl<B: Clone> Draw<B> {
    /// The three launches: peaks, sums, draws.
    pub fn nodes(&self) -> [Node<B>; 3] {
        let blocks = self.width.div_ceil(32);
        let node = |name: &str, grid: [usize; 3], shared: u32| Node {
            kernel: kernel(name).unwrap_or_else(|| unreachable!("{name} stands in the table")),
            grid: grid.map(|blocks| blocks as u32),
            shared,
            arguments: self.arguments(blocks),
        };
        [
            node("peaks", [self.rows, 1, 1], 64),
            node("sums", [blocks.div_ceil(128), self.rows, 1], 4 * 32 * 33 * 4),
            node("draw", [self.rows, 1, 1], 2 * 128 * 8),
        ]
    }

    fn arguments(&self, blocks: usize) -> Vec<Argument<B>> {
        let places = [
            &self.logits,
            &self.peaks,
            &self.whole,
            &self.allowed,
            &self.masks,
            &self.mask_of,
            &self.scales,
            &self.seeds,
            &self.places,
            &self.out,
        ];
        let sizes = [self.width, blocks].map(|size| Argument::Int(size as i32));
        places
            .into_iter()
            .map(|place| Argument::At(place.clone()))
            .chain(sizes)
            .collect()
    }
}

/// What a card tells of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnRow {
    /// Σ exp(scale · (logit − peak)) of what is allowed.
    pub sum: f64,
    /// The same of the whole row.
    pub total: f64,
    /// The same of the token.
    pub weight: f64,
    /// The same of all allowed tokens but this one.
    pub others: f64,
    /// The token.
    pub token: u32,
    /// Its logit.
    pub logit: f32,
    /// The largest logit of the row.
    pub peak: f32,
    /// Whether a token was drawn. If not, the row has to be looked at by the host.
    pub is_drawn: bool,
}

impl DrawnRow {
    /// Reads what the kernel wrote.
    pub fn read(bytes: &[u8; DRAWN_BYTES]) -> Self {
        let eight = |at: usize| f64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let four = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        DrawnRow {
            sum: eight(0),
            total: eight(8),
            weight: eight(16),
            others: eight(24),
            token: four(32),
            logit: f32::from_bits(four(36)),
            peak: f32::from_bits(four(40)),
            is_drawn: four(44) == 0,
        }
    }

    /// What a walk needs of the draw, as the library tells it; `None` where the host has to look at the row.
    pub fn drawn(&self, scale: f64) -> Option<Drawn> {
        let log_mass = self.sum.ln() - self.total.ln();
        self.is_drawn.then(|| Drawn {
            token: self.token,
            mass: log_mass.exp(),
            log_mass,
            log_probability: (f64::from(self.logit) - f64::from(self.peak)) * scale - self.total.ln(),
            log_kept: log_mass,
        })
    }

    /// The share that the other allowed tokens have together ([`Part::share_without`](lexiform::law::Part::share_without)).
    pub fn share_of_others(&self) -> f64 {
        self.others / self.sum
    }
}
