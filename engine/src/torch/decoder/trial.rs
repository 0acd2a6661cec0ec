//! Whether the kernels compute what libtorch computes: asked once, when the cache is made.
//!
//! A few tokens are fed by libtorch and by plan, the latter three times: its steps one by one, captured, and replayed. Then a text that is
//! cut into pieces, as prompts are. Rows that are
//! far from those of libtorch mean that something is wrong with this card, driver or library; then libtorch runs all passes, and the
//! operator is told. Two ways to round in bf16 are some hundredths apart.

use crate::model::Feed;
use crate::model::flight::Flight;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The largest root of the mean of squares of the differences of logits, relative to that of the logits, that is rounding.
pub(super) const MOST_OFF: f64 = 0.15;
/// Tokens that are fed: as many as are padded to no other number, and more than fit a piece.
const TOKENS: [usize; 2] = [8, 43];

/// Who runs a pass.
#[derive(Clone, Copy)]
pub(super) enum By {
    Torch,
    Plan,
}

/// What there is for a trial: nobody uses the cache yet.
pub(super) struct Room {
    /// Tokens of the model.
    pub(super) vocab: usize,
    /// Positions that a text may have in the cache.
    pub(super) positions: usize,
    /// Slots of a block of the cache.
    pub(super) block_size: usize,
}

/// How far the rows by plan are from those of libtorch, relative to their size; NaN if they are not numbers.
pub(super) fn farthest(
    room: &Room,
    mut run: impl FnMut(By, &[Feed<'_>]) -> Result<Box<dyn Flight>>,
) -> Result<f64> {
    let mut farthest = 0.0;
    for count in TOKENS {
        let off = farthest_of(room, count.min(room.positions), &mut run)?;
        // A NaN is the largest.
        farthest = if off <= farthest { farthest } else { off };
    }
    Ok(farthest)
}

/// The same of a text of so many tokens.
fn farthest_of(
    &Room {
        vocab, block_size, ..
    }: &Room,
    count: usize,
    run: &mut impl FnMut(By, &[Feed<'_>]) -> Result<Box<dyn Flight>>,
) -> Result<f64> {
    let table: Vec<u32> = (0..count.div_ceil(block_size) as u32).collect();
    let tokens: Vec<u32> = (0..count).map(|number| (number * vocab / count) as u32).collect();
    let feed = Feed {
        tokens: &tokens,
        start: 0,
        table: &table,
        rows: count,
        parents: None,
        scale: 1.0,
    };
    let rows: Vec<usize> = (0..count).collect();
    let mut bring = |by: By| {
        let logits = run(by, &[feed])?.rows(&rows);
        let logits = logits.map_err(|error| TchError::Io(std::io::Error::other(error)))?;
        let logits: Vec<f32> = rows.iter().flat_map(|&row| logits.row(row).to_vec()).collect();
        Tensor::f_from_slice(&logits)?.f_to_kind(Kind::Double)
    };
    let size = |numbers: &Tensor| f64::try_from(numbers.f_square()?.f_mean(Kind::Double)?).map(f64::sqrt);
    let known = bring(By::Torch)?;
    let mut farthest = 0.0;
    for _ in 0..3 {
        let off = size(&bring(By::Plan)?.f_sub(&known)?)? / size(&known)?;
        // A NaN is the largest.
        farthest = if off <= farthest { farthest } else { off };
    }
    Ok(farthest)
}
