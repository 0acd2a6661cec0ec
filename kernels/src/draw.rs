//! Draws from rows of logits on a card, and the results that come back for each row.
//!
//! The kernels of `draw.cu` add, multiply and choose in the order of the library's law, so that a token drawn
//! there is the one that [`Distribution`](lexiform_law::Distribution) draws from the same row, and every
//! reported number is the same to the last bit: greedy or not, with penalties, biases and filters by rank or
//! without. `kernels/tests/kernels/draws.rs` verifies this on the processor.

use super::asks::{BLOCK, Sent};
use super::node::{Argument, Node, Place};
use super::shapes::{CUT_PARTS, DRAWN_BYTES, kernel};
use lexiform_law::Drawn;

/// The number of logits of a row that a block of the kernel changes.
const CHANGED: usize = 2048;

/// The rows of logits and the asks of some draws.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a, B> {
    /// `f32` `[rows, width]`; columns that are not tokens hold minus infinity.
    pub logits: Place<B>,
    /// The bytes of the asks.
    pub asked: Place<B>,
    /// The packed asks, whose bytes are at `asked`.
    pub sent: &'a Sent,
    /// [`room`](Self::room) bytes, written.
    pub room: Place<B>,
    /// [`DRAWN_BYTES`] for each ask, written.
    pub out: Place<B>,
    /// The number of logits of a row, at most [`MOST_DRAW_WIDTH`](super::shapes::MOST_DRAW_WIDTH).
    pub width: usize,
}

/// Returns the bytes of each intermediate result of the draws, in the order of the fields of `Draw` in
/// `draw.cu`.
fn parts(sent: &Sent, width: usize) -> [usize; 10] {
    let (asks, blocks) = (sent.asks, width.div_ceil(BLOCK));
    let of_cut = |bytes: usize| if sent.is_cut { bytes } else { 0 };
    [
        sent.changed * width * 4,
        asks * 4,
        asks * 8,
        asks * blocks * 8,
        asks * blocks * 8,
        of_cut(asks * blocks * 8),
        of_cut(asks * blocks * 4),
        of_cut(asks * CUT_PARTS * 8),
        of_cut(asks * CUT_PARTS * 4),
        of_cut(asks * 16),
    ]
    .map(|bytes| bytes.next_multiple_of(16))
}

impl<B: Clone> Draw<'_, B> {
    /// Returns the bytes of all intermediate results of these draws.
    pub fn room(sent: &Sent, width: usize) -> usize {
        parts(sent, width).iter().sum()
    }

    /// Returns the launches: three, plus one if logits are changed, and one if filters cut.
    pub fn nodes(&self) -> Vec<Node<B>> {
        let (asks, blocks) = (self.sent.asks, self.width.div_ceil(BLOCK));
        let node = |name: &str, grid: [usize; 2], shared: u32| Node {
            kernel: kernel(name).unwrap_or_else(|| unreachable!("{name} stands in the table")),
            grid: [grid[0] as u32, grid[1] as u32, 1],
            shared,
            arguments: self.arguments(blocks),
        };
        let parts = 3 * 4 * CUT_PARTS as u32;
        let changes = self.width.div_ceil(CHANGED);
        let change = (self.sent.changed > 0).then(|| node("change", [changes, asks], 2 * 4 * CHANGED as u32));
        let cut = node("cut", [asks, 1], parts + 8 * CUT_PARTS as u32 + 16 * 8 + 16);
        let nodes = [
            change,
            Some(node("peaks", [asks, 1], 16 * 8)),
            Some(node(
                "sums",
                [blocks.div_ceil(128), asks],
                4 * 32 * 33 * 4 + parts,
            )),
            self.sent.is_cut.then_some(cut),
            Some(node("draw", [asks, 1], 3 * 128 * 8)),
        ];
        nodes.into_iter().flatten().collect()
    }

    fn arguments(&self, blocks: usize) -> Vec<Argument<B>> {
        let sent = self.sent.offsets.map(|offset| behind(&self.asked, offset));
        let parts = parts(self.sent, self.width).into_iter().scan(0, |at, bytes| {
            *at += bytes;
            Some(behind(&self.room, *at - bytes))
        });
        let places = [self.logits.clone(), self.asked.clone()].into_iter();
        let places = places.chain(sent).chain(parts).chain([self.out.clone()]);
        let sizes = [self.width, blocks].map(|size| Argument::Int(size as i32));
        places.map(Argument::At).chain(sizes).collect()
    }
}

fn behind<B: Clone>(place: &Place<B>, bytes: usize) -> Place<B> {
    Place {
        buffer: place.buffer.clone(),
        offset: place.offset + bytes,
    }
}

/// The result of a draw from a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnRow {
    /// `Σ exp(scale · (logit − peak))` of the allowed tokens.
    pub sum: f64,
    /// The same sum over the whole row.
    pub total: f64,
    /// The same sum over the tokens that can be drawn: the allowed ones, or fewer if filters cut.
    pub kept: f64,
    /// The same term of the drawn token.
    pub weight: f64,
    /// The same sum over all tokens that can be drawn except this one.
    pub others: f64,
    /// The token.
    pub token: u32,
    /// Its logit.
    pub logit: f32,
    /// The largest logit of the row.
    pub peak: f32,
    /// `true` if a token was drawn. If not, the host has to process the row.
    pub is_drawn: bool,
}

impl DrawnRow {
    /// Reads the output of the kernel.
    pub fn read(bytes: &[u8; DRAWN_BYTES]) -> Self {
        let eight = |at: usize| f64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let four = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        DrawnRow {
            sum: eight(0),
            total: eight(8),
            kept: eight(16),
            weight: eight(24),
            others: eight(32),
            token: four(40),
            logit: f32::from_bits(four(44)),
            peak: f32::from_bits(four(48)),
            is_drawn: four(52) == 0,
        }
    }

    /// Returns the draw as the library reports it to a walk; `None` if the host has to process the row.
    pub fn drawn(&self, scale: f64) -> Option<Drawn> {
        let log_mass = self.sum.ln() - self.total.ln();
        self.is_drawn.then(|| Drawn {
            token: self.token,
            mass: log_mass.exp(),
            log_mass,
            log_probability: (f64::from(self.logit) - f64::from(self.peak)) * scale - self.total.ln(),
            log_kept: self.kept.ln() - self.total.ln(),
        })
    }

    /// Returns the share of the other tokens that can be drawn
    /// ([`Part::share_without`](lexiform_law::Part::share_without)).
    pub fn share_of_others(&self) -> f64 {
        self.others / self.kept
    }
}
