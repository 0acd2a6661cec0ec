//! Products of rows with a matrix in blocks, on the CPU.
//!
//! ```text
//!   1, 2, 4 rows   a block of each of C columns ─► weights in registers ─► sums of all rows     no number is written
//!   other counts   some columns ─► numbers in f32 in the cache of a core ─► the loops of `tiles`
//! ```
//!
//! Both add in the same order, lane by lane from the first weight of a row to the last, so that a row has the same product in any company.

use super::blocks::{Block, GROUP, Iq4Nl, Iq4Xs, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};
use super::lanes::{Lanes, Plain};
#[cfg(target_arch = "x86_64")]
use super::lanes::{avx2::Lanes8, avx512::Lanes16};
use super::tiles::{NEAR, Pointers, Shape};
#[cfg(target_arch = "x86_64")]
use super::tiles::{has_avx2, has_avx512};
use crate::torch::gguf::blocks::BlockFormat;
use std::ops::Range;

/// The most columns that are widened at once; fewer where they are long, so that their numbers stay in the cache of a core.
const MOST_WIDE: usize = 64;

/// These columns of all rows.
///
/// # Safety
/// The pointers lead to as many rows and blocks as the shape says, and nobody else reads or writes these columns of the result.
///
/// # Panics
/// The numbers of this format stand for themselves: they are in no blocks.
pub(super) unsafe fn columns(format: BlockFormat, all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match format {
            BlockFormat::Q4_0 => of::<Q4_0>(all, shape, columns),
            BlockFormat::Q4_1 => of::<Q4_1>(all, shape, columns),
            BlockFormat::Q5_0 => of::<Q5_0>(all, shape, columns),
            BlockFormat::Q5_1 => of::<Q5_1>(all, shape, columns),
            BlockFormat::Q8_0 => of::<Q8_0>(all, shape, columns),
            BlockFormat::Q2K => of::<Q2K>(all, shape, columns),
            BlockFormat::Q3K => of::<Q3K>(all, shape, columns),
            BlockFormat::Q4K => of::<Q4K>(all, shape, columns),
            BlockFormat::Q5K => of::<Q5K>(all, shape, columns),
            BlockFormat::Q6K => of::<Q6K>(all, shape, columns),
            BlockFormat::Iq4Nl => of::<Iq4Nl>(all, shape, columns),
            BlockFormat::Iq4Xs => of::<Iq4Xs>(all, shape, columns),
            BlockFormat::F32 | BlockFormat::F16 | BlockFormat::Bf16 => {
                unreachable!("{format} is kept in no blocks")
            }
        }
    }
}

/// # Safety
/// As for [`columns`].
unsafe fn of<B: Block>(all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the processor has these instructions, and the caller keeps the contract.
            return unsafe { by_avx512::<B>(all, shape, columns) };
        }
        if has_avx2() {
            // SAFETY: as above.
            return unsafe { by_avx2::<B>(all, shape, columns) };
        }
    }
    // SAFETY: the caller keeps the contract.
    unsafe { by::<B, Plain, 2>(all, shape, columns) }
}

/// # Safety
/// As for [`columns`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
unsafe fn by_avx512<B: Block>(all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
    // SAFETY: the caller keeps the contract.
    unsafe { by::<B, Lanes16, 4>(all, shape, columns) }
}

/// # Safety
/// As for [`columns`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn by_avx2<B: Block>(all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
    // SAFETY: the caller keeps the contract.
    unsafe { by::<B, Lanes8, 2>(all, shape, columns) }
}

/// These columns, `C` at a time where rows are few.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn by<B: Block, L: Lanes, const C: usize>(all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
    // What is left of the columns takes the way of many rows.
    let few = match shape.rows {
        1 | 2 | 4 => columns.len() / C * C,
        _ => 0,
    };
    let (few, rest) = (
        columns.start..columns.start + few,
        columns.start + few..columns.end,
    );
    // SAFETY: the caller keeps the contract.
    unsafe {
        for column in few.step_by(C) {
            match shape.rows {
                1 => tile::<B, L, 1, C>(all, shape, column),
                2 => tile::<B, L, 2, C>(all, shape, column),
                _ => tile::<B, L, 4, C>(all, shape, column),
            }
        }
        many::<B, L>(all, shape, rest);
    }
}

/// All rows, which are `R`, with `C` columns from `column` on.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn tile<B: Block, L: Lanes, const R: usize, const C: usize>(
    all: Pointers<u8>,
    shape: Shape,
    column: usize,
) {
    let blocks = shape.k / B::WEIGHTS;
    let row_bytes = blocks * B::BYTES;
    // SAFETY: all numbers read and written are those of these rows and columns.
    unsafe {
        let w = all.w.add(column * row_bytes);
        let mut sums = [[L::zero(); C]; R];
        for block in 0..blocks {
            let mut from = [w; C];
            for (column, from) in from.iter_mut().enumerate() {
                *from = w.add(column * row_bytes + block * B::BYTES);
            }
            let scales = from.map(|from| B::scales::<L>(from));
            for number in 0..B::WEIGHTS / GROUP {
                for at in (0..GROUP).step_by(L::COUNT) {
                    let mut weights = [L::zero(); C];
                    for (column, weight) in weights.iter_mut().enumerate() {
                        *weight = B::weights::<L>(from[column], number, &scales[column], at);
                    }
                    let x = all.x.add(block * B::WEIGHTS + number * GROUP + at);
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let x = L::load(x.add(row * shape.k));
                        for (sum, weight) in sums.iter_mut().zip(weights) {
                            *sum = L::add_product(x, weight, *sum);
                        }
                    }
                }
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            for (number, sum) in sums.into_iter().enumerate() {
                *all.out.add(row * shape.columns + column + number) = L::sum(sum);
            }
        }
    }
}

/// Any number of rows, with columns that are widened before.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn many<B: Block, L: Lanes>(all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
    let k = shape.k;
    let each = (NEAR / (4 * k.max(1))).clamp(1, MOST_WIDE).next_multiple_of(4);
    let mut wide = vec![0.0; each.min(columns.len()) * k];
    for first in columns.clone().step_by(each) {
        let some = first..(first + each).min(columns.end);
        // SAFETY: the caller keeps the contract, and the numbers are as many as the columns have.
        unsafe {
            for (column, wide) in some.clone().zip(wide.chunks_exact_mut(k)) {
                widen::<B, L>(all.w, column, wide);
            }
            let w = wide.as_ptr().wrapping_sub(first * k);
            Pointers::new(all.x, w, None, all.out).columns(shape, some);
        }
    }
}

/// The numbers of a column.
///
/// # Safety
/// As above; there are as many in `to` as the column has.
#[inline(always)]
unsafe fn widen<B: Block, L: Lanes>(w: *const u8, column: usize, to: &mut [f32]) {
    let blocks = to.len() / B::WEIGHTS;
    // SAFETY: the caller keeps the contract.
    unsafe {
        for block in 0..blocks {
            let from = w.add((column * blocks + block) * B::BYTES);
            let scales = B::scales::<L>(from);
            for number in 0..B::WEIGHTS / GROUP {
                for at in (0..GROUP).step_by(L::COUNT) {
                    let to = to.as_mut_ptr().add(block * B::WEIGHTS + number * GROUP + at);
                    L::store(B::weights::<L>(from, number, &scales, at), to);
                }
            }
        }
    }
}
