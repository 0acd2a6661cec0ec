//! Draws from rows of logits on a card, and what comes home of each row.
//!
//! The kernels of `draw.cu` add, multiply and choose in the order of the library's law, so that a token drawn
//! there is the one that [`Distribution`](lexiform_law::Distribution) draws from the same row, and every
//! number that is told of it is the same to the last bit: greedy or not, with penalties, biases and filters
//! by rank or without. Held by `kernels/tests/kernels/draws.rs`, on the processor.

use super::asks::{BLOCK, Sent};
use super::node::{Argument, Node, Place};
use super::shapes::{CUT_PARTS, DRAWN_BYTES, kernel};
use lexiform_law::Drawn;

/// Logits of a row that a block of the kernel changes.
const CHANGED: usize = 2048;

/// Where the rows of draws lie, and what is asked of them.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a, B> {
    /// `f32` `[rows, width]`; columns that are no tokens hold minus infinity.
    pub logits: Place<B>,
    /// The bytes of what is asked.
    pub asked: Place<B>,
    /// What these bytes say.
    pub sent: &'a Sent,
    /// [`room`](Self::room) bytes, written.
    pub room: Place<B>,
    /// [`DRAWN_BYTES`] for each ask, written.
    pub out: Place<B>,
    /// Logits of a row, [`MOST_DRAW_WIDTH`](super::shapes::MOST_DRAW_WIDTH) at most.
    pub width: usize,
}

/// What draws compute on the way, in the order of the fields of `Draw` in `draw.cu`, and the bytes of each.
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
    /// Bytes of what these draws compute on the way.
    pub fn room(sent: &Sent, width: usize) -> usize {
        parts(sent, width).iter().sum()
    }

    /// The launches: three, one more where logits are changed, and one where filters cut.
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

/// What a card tells of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnRow {
    /// Σ exp(scale · (logit − peak)) of what is allowed.
    pub sum: f64,
    /// The same of the whole row.
    pub total: f64,
    /// The same of what can be drawn: of what is allowed, or less where filters cut.
    pub kept: f64,
    /// The same of the token.
    pub weight: f64,
    /// The same of all tokens that can be drawn but this one.
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
            kept: eight(16),
            weight: eight(24),
            others: eight(32),
            token: four(40),
            logit: f32::from_bits(four(44)),
            peak: f32::from_bits(four(48)),
            is_drawn: four(52) == 0,
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
            log_kept: self.kept.ln() - self.total.ln(),
        })
    }

    /// The share that the other tokens that can be drawn have together
    /// ([`Part::share_without`](lexiform_law::Part::share_without)).
    pub fn share_of_others(&self) -> f64 {
        self.others / self.kept
    }
}
