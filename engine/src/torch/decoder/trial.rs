//! The trial of the kernels: a check, when the cache is made, that they compute the same as libtorch.
//!
//! A few tokens are fed by libtorch and by plan, the latter three times: its steps one by one, captured, and
//! replayed; and each time both at once and in pieces, since other kernels make the products for one and two
//! tokens. Then follows a text that attends in pieces, as prompts do; for a model with experts also one that
//! repeats a token, so that all tokens go to the same experts, more than these take at once. Rows that are
//! far from those of libtorch mean that something is wrong with this GPU, driver or library; then libtorch
//! runs all passes, and the operator is told. Two ways to round in bf16 differ by some hundredths.
//!
//! # Why there is a trial
//!
//! Kernels that compute nonsense on some GPU or driver would otherwise write plausible texts. Eight tokens by
//! both ways take less time than loading a layer.

use crate::model::Feed;
use crate::model::flight::Flight;
use std::ops::Range;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The largest difference that counts as rounding: the root mean square of the differences of logits,
/// relative to that of the logits.
pub(super) const MOST_OFF: f64 = 0.15;
/// The number of tokens that are fed.
const TOKENS: usize = 8;
/// The pieces in which they are fed: at once, and such that every size with separate product kernels occurs.
const PIECES: [&[usize]; 2] = [&[TOKENS], &[1, 2, TOKENS - 3]];
/// The pieces of a prompt that is longer than what attends at once: at once, and such that each takes two
/// products for sixteen vectors of a matrix in eight bits.
const PROMPTS: [&[usize]; 2] = [&[43], &[23, 20]];

/// The way in which a pass is run.
#[derive(Clone, Copy)]
pub(super) enum By {
    Torch,
    Plan,
}

/// The room for a trial: no text uses the cache yet.
pub(super) struct Room {
    /// The number of tokens of the model.
    pub(super) vocab: usize,
    /// The number of positions that a text may have in the cache.
    pub(super) positions: usize,
    /// The number of slots of a block of the cache.
    pub(super) block_size: usize,
    /// `true` if some layers have experts.
    pub(super) has_experts: bool,
    /// `true` if matrices are kept in eight bits.
    pub(super) is_rounded: bool,
}

/// Returns how far the rows by plan are from those of libtorch, relative to their size; NaN if they are not
/// numbers.
pub(super) fn farthest(
    room: &Room,
    mut run: impl FnMut(By, &[Feed<'_>]) -> Result<Box<dyn Flight>>,
) -> Result<f64> {
    let vocab = room.vocab;
    let spread = |number: usize, count: usize| number * vocab / count;
    let few = farthest_of(room, spread, &PIECES.repeat(3), &mut run)?;
    let prompts = match room.is_rounded {
        true => &PROMPTS[..],
        false => &PROMPTS[..1],
    };
    let prompt = farthest_of(room, spread, prompts, &mut run)?;
    let off = larger(few, prompt);
    match room.has_experts {
        true => Ok(larger(
            off,
            farthest_of(room, |_, _| vocab / 2, &PROMPTS[..1], &mut run)?,
        )),
        false => Ok(off),
    }
}

/// Returns the larger number, where NaN is the largest.
fn larger(one: f64, other: f64) -> f64 {
    if one.is_nan() || other <= one { one } else { other }
}

/// Returns the same for one text, whose tokens `token` gives, fed by libtorch in the first of these ways and
/// by plan in each of them.
fn farthest_of(
    room: &Room,
    token: impl Fn(usize, usize) -> usize,
    ways: &[&[usize]],
    run: &mut impl FnMut(By, &[Feed<'_>]) -> Result<Box<dyn Flight>>,
) -> Result<f64> {
    let block_size = room.block_size;
    let count = ways[0].iter().sum::<usize>().min(room.positions);
    let table: Vec<u32> = (0..count.div_ceil(block_size) as u32).collect();
    let tokens: Vec<u32> = (0..count).map(|number| token(number, count) as u32).collect();
    let mut bring = |by: By, pieces: &[usize]| {
        let (mut start, mut logits) = (0, Vec::new());
        for &piece in pieces {
            let end = (start + piece).min(count);
            if start < end {
                logits.extend(rows((&tokens, &table), start..end, |feeds| run(by, feeds))?);
            }
            start = end;
        }
        Tensor::f_from_slice(&logits)?.f_to_kind(Kind::Double)
    };
    let size = |numbers: &Tensor| f64::try_from(numbers.f_square()?.f_mean(Kind::Double)?).map(f64::sqrt);
    let known = bring(By::Torch, ways[0])?;
    let mut farthest = 0.0;
    for pieces in ways {
        let off = size(&bring(By::Plan, pieces)?.f_sub(&known)?)? / size(&known)?;
        farthest = larger(farthest, off);
    }
    Ok(farthest)
}

/// Returns the rows of the tokens `fed` of a text in these blocks, one after another.
fn rows(
    (text, table): (&[u32], &[u32]),
    fed: Range<usize>,
    run: impl FnOnce(&[Feed<'_>]) -> Result<Box<dyn Flight>>,
) -> Result<Vec<f32>> {
    let feed = Feed {
        tokens: &text[fed.clone()],
        start: fed.start,
        table,
        rows: fed.len(),
        parents: None,
        scale: 1.0,
    };
    let rows: Vec<usize> = (0..fed.len()).collect();
    let logits = run(&[feed])?.rows(&rows);
    let logits = logits.map_err(|error| TchError::Io(std::io::Error::other(error)))?;
    Ok(rows.iter().flat_map(|&row| logits.row(row).to_vec()).collect())
}
