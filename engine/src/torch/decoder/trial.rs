//! Whether the kernels compute what libtorch computes: asked once, when the cache is made.
//!
//! A few tokens are fed by libtorch and by plan, the latter three times: its steps one by one, captured, and replayed. Rows that are
//! far from those of libtorch mean that something is wrong with this card, driver or library; then libtorch runs all passes, and the
//! operator is told. Two ways to round in bf16 are some hundredths apart.

use crate::model::Feed;
use crate::model::flight::Flight;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The largest root of the mean of squares of the differences of logits, relative to that of the logits, that is rounding.
pub(super) const MOST_OFF: f64 = 0.15;
/// Tokens that are fed.
const TOKENS: usize = 8;

/// Who runs a pass.
#[derive(Clone, Copy)]
pub(super) enum By {
    Torch,
    Plan,
}

/// How far the rows by plan are from those of libtorch, relative to their size; NaN if they are not numbers. The model has so many
/// tokens, and the first block of its cache so many slots, which nobody uses yet.
pub(super) fn farthest(
    vocab: usize,
    slots: usize,
    mut run: impl FnMut(By, &[Feed<'_>]) -> Result<Box<dyn Flight>>,
) -> Result<f64> {
    let count = TOKENS.min(slots);
    let tokens: Vec<u32> = (0..count).map(|number| (number * vocab / count) as u32).collect();
    let feed = Feed {
        tokens: &tokens,
        start: 0,
        table: &[0],
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
