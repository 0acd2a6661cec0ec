//! Whether the kernels compute what libtorch computes: asked once, when the cache is made.
//!
//! A few tokens are fed by libtorch and by plan, the latter three times: its steps one by one, captured, and replayed; and each time both
//! at once and in pieces, since other kernels make the products for one and two tokens. Rows that are
//! far from those of libtorch mean that something is wrong with this card, driver or library; then libtorch runs all passes, and the
//! operator is told. Two ways to round in bf16 are some hundredths apart.

use crate::model::Feed;
use crate::model::flight::Flight;
use std::ops::Range;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The largest root of the mean of squares of the differences of logits, relative to that of the logits, that is rounding.
pub(super) const MOST_OFF: f64 = 0.15;
/// Tokens that are fed.
const TOKENS: usize = 8;
/// The pieces that they are fed in: at once, and such that all sizes with products of their own are there.
const PIECES: [&[usize]; 2] = [&[TOKENS], &[1, 2, TOKENS - 3]];

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
    let mut bring = |by: By, pieces: &[usize]| {
        let (mut start, mut logits) = (0, Vec::new());
        for &piece in pieces {
            let end = (start + piece).min(count);
            if start < end {
                logits.extend(rows(&tokens, start..end, |feeds| run(by, feeds))?);
            }
            start = end;
        }
        Tensor::f_from_slice(&logits)?.f_to_kind(Kind::Double)
    };
    let size = |numbers: &Tensor| f64::try_from(numbers.f_square()?.f_mean(Kind::Double)?).map(f64::sqrt);
    let known = bring(By::Torch, PIECES[0])?;
    let mut farthest = 0.0;
    for pieces in PIECES.repeat(3) {
        let off = size(&bring(By::Plan, pieces)?.f_sub(&known)?)? / size(&known)?;
        // A NaN is the largest.
        farthest = if off <= farthest { farthest } else { off };
    }
    Ok(farthest)
}

/// The rows of these tokens of a text, one after another.
fn rows(
    text: &[u32],
    fed: Range<usize>,
    run: impl FnOnce(&[Feed<'_>]) -> Result<Box<dyn Flight>>,
) -> Result<Vec<f32>> {
    let feed = Feed {
        tokens: &text[fed.clone()],
        start: fed.start,
        table: &[0],
        rows: fed.len(),
        parents: None,
        scale: 1.0,
    };
    let rows: Vec<usize> = (0..fed.len()).collect();
    let logits = run(&[feed])?.rows(&rows);
    let logits = logits.map_err(|error| TchError::Io(std::io::Error::other(error)))?;
    Ok(rows.iter().flat_map(|&row| logits.row(row).to_vec()).collect())
}
