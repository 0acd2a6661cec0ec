//! Products of rows with a matrix in blocks, on the CPU.
//!
//! ```text
//!   up to 16 rows  a block of each of C columns ─► weights in registers ─► sums of some rows
//!   more           some columns ─► numbers in f32 in the cache of a core ─► the loops of `tiles`
//! ```
//!
//! Both add in the same order, lane by lane from the first weight of a row to the last, so a row has the same
//! product whatever other rows there are.

use super::blocks::{Block, GROUP, Iq4Nl, Iq4Xs, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};
use super::lanes::{Lanes, Plain, added};
#[cfg(target_arch = "x86_64")]
use super::lanes::{avx2::Lanes8, avx512::Lanes16};
use super::tiles::{AHEAD, LINE, NEAR_BYTES, Pointers, Shape, prefetch};
#[cfg(target_arch = "x86_64")]
use super::tiles::{has_avx2, has_avx512};
use crate::torch::gguf::blocks::BlockFormat;
use std::ops::Range;

/// The most columns that are widened at once; fewer if they are long, so that their numbers stay in the cache
/// of a core.
const MOST_WIDE: usize = 64;

/// Computes these columns for all rows.
///
/// # Safety
/// The pointers lead to as many rows and blocks as the shape says, and nothing else reads or writes these
/// columns of the result.
///
/// # Panics
/// Panics if the format is one of plain numbers, which have no blocks.
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
    unsafe { by::<B, Plain, 2, 4>(all, shape, columns) }
}

/// # Safety
/// As for [`columns`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
unsafe fn by_avx512<B: Block>(all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
    // SAFETY: the caller keeps the contract.
    unsafe { by::<B, Lanes16, 4, 16>(all, shape, columns) }
}

/// # Safety
/// As for [`columns`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn by_avx2<B: Block>(all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
    // SAFETY: the caller keeps the contract.
    unsafe { by::<B, Lanes8, 2, 4>(all, shape, columns) }
}

/// Computes these columns, by tiles of all rows if there are few: `ONE` columns of one row, two columns of
/// more rows, and of eight rows at a time up to `MOST`. With more rows, or fewer registers, it is faster to
/// write the widened weights to memory once.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn by<B: Block, L: Lanes, const ONE: usize, const MOST: usize>(
    all: Pointers<u8>,
    shape: Shape,
    columns: Range<usize>,
) {
    // SAFETY: the caller keeps the contract.
    unsafe {
        match shape.rows {
            1 => tiles::<B, L, 1, ONE>(all, shape, columns),
            2 => tiles::<B, L, 2, 2>(all, shape, columns),
            3 => tiles::<B, L, 3, 2>(all, shape, columns),
            4 => tiles::<B, L, 4, 2>(all, shape, columns),
            rows if rows <= MOST => tiles::<B, L, 8, 2>(all, shape, columns),
            _ => many::<B, L>(all, shape, columns),
        }
    }
}

/// Computes these columns, `C` at a time, for all rows, in groups of `R`.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn tiles<B: Block, L: Lanes, const R: usize, const C: usize>(
    all: Pointers<u8>,
    shape: Shape,
    columns: Range<usize>,
) {
    let in_tiles = columns.len() / C * C;
    let (in_tiles, rest) = (
        columns.start..columns.start + in_tiles,
        columns.start + in_tiles..columns.end,
    );
    // SAFETY: the caller keeps the contract.
    unsafe {
        let packed = packed::<L, R>(all.x, shape);
        for column in in_tiles.step_by(C) {
            for (group, x) in packed.chunks_exact(R * shape.k).enumerate() {
                tile::<B, L, R, C>(Pointers { x: x.as_ptr(), ..all }, shape, R * group, column);
            }
        }
        many::<B, L>(all, shape, rest);
    }
}

/// Returns the numbers of rows in the order in which tiles read them, group by group: a vector of each of `R`
/// rows, then the next vector of each. Rows that are missing in the last group are zeros.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn packed<L: Lanes, const R: usize>(x: *const f32, shape: Shape) -> Vec<f32> {
    let (k, groups) = (shape.k, shape.rows.div_ceil(R));
    let mut packed = vec![0.0; groups * R * k];
    for row in 0..shape.rows {
        let to = &mut packed[row / R * R * k + row % R * L::COUNT..];
        for (vector, to) in to.chunks_mut(R * L::COUNT).enumerate().take(k / L::COUNT) {
            // SAFETY: the caller keeps the contract; each chunk has room for a vector.
            unsafe { L::store(L::load(x.add(row * k + vector * L::COUNT)), to.as_mut_ptr()) };
        }
    }
    packed
}

/// Computes `C` columns from `column` on for the `R` packed rows from `first` on.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn tile<B: Block, L: Lanes, const R: usize, const C: usize>(
    all: Pointers<u8>,
    shape: Shape,
    first: usize,
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
                ask_ahead::<B>(*from);
            }
            let scales = from.map(|from| B::scales::<L>(from));
            for number in 0..B::WEIGHTS / GROUP {
                for at in (0..GROUP).step_by(L::COUNT) {
                    let mut weights = [L::zero(); C];
                    for (column, weight) in weights.iter_mut().enumerate() {
                        *weight = B::weights::<L>(from[column], number, &scales[column], at);
                    }
                    let x = all.x.add(R * (block * B::WEIGHTS + number * GROUP + at));
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let x = L::load(x.add(row * L::COUNT));
                        for (sum, weight) in sums.iter_mut().zip(weights) {
                            *sum = L::add_product(x, weight, *sum);
                        }
                    }
                }
            }
        }
        let there = R.min(shape.rows - first);
        for (row, sums) in added::<L, R, C>(sums).into_iter().enumerate().take(there) {
            for (number, sum) in sums.into_iter().enumerate() {
                *all.out.add((first + row) * shape.columns + column + number) = sum;
            }
        }
    }
}

/// Prefetches the block that is read some time after this one.
#[inline(always)]
fn ask_ahead<B: Block>(block: *const u8) {
    for line in (0..B::BYTES).step_by(LINE) {
        prefetch(block.wrapping_add(AHEAD + line));
    }
}

/// Computes these columns for any number of rows; the columns are widened first.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn many<B: Block, L: Lanes>(all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
    let k = shape.k;
    let each = (NEAR_BYTES / (4 * k.max(1)))
        .clamp(1, MOST_WIDE)
        .next_multiple_of(4);
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

/// Writes the numbers of a column to `to`.
///
/// # Safety
/// As above; `to` has as many numbers as the column.
#[inline(always)]
unsafe fn widen<B: Block, L: Lanes>(w: *const u8, column: usize, to: &mut [f32]) {
    let blocks = to.len() / B::WEIGHTS;
    // SAFETY: the caller keeps the contract.
    unsafe {
        for block in 0..blocks {
            let from = w.add((column * blocks + block) * B::BYTES);
            ask_ahead::<B>(from);
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

#[cfg(test)]
mod tests {
    use super::super::blocks::tests::blocks;
    use super::super::tiles::tests::numbers;
    use super::*;

    type ByLanes = unsafe fn(Pointers<u8>, Shape, Range<usize>);

    /// Returns the functions for each kind of processor.
    fn ways<B: Block>() -> Vec<ByLanes> {
        unsafe fn plain<B: Block>(all: Pointers<u8>, shape: Shape, columns: Range<usize>) {
            // SAFETY: the caller keeps the contract.
            unsafe { by::<B, Plain, 2, 4>(all, shape, columns) }
        }
        let mut ways: Vec<ByLanes> = vec![plain::<B>];
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx2() {
                ways.push(by_avx2::<B>);
            }
            if has_avx512() {
                ways.push(by_avx512::<B>);
            }
        }
        ways
    }

    fn check<B: Block>() {
        let (k, columns) = (2 * B::WEIGHTS, 7);
        let w = blocks(B::FORMAT, 2 * columns, 37);
        for rows in [1, 2, 3, 4, 5, 9, 17] {
            let (x, shape) = (numbers(rows * k, 41), Shape { rows, k, columns });
            let by = |by: ByLanes| {
                let mut out = vec![f32::NAN; rows * columns];
                let pointers = Pointers::new(x.as_ptr(), w.as_ptr(), None, out.as_mut_ptr());
                // SAFETY: the vectors are as large as the shape says, and the test has checked that the
                // processor has the instructions.
                unsafe { by(pointers, shape, 0..columns) };
                out
            };
            let all: Vec<Vec<f32>> = ways::<B>().into_iter().map(by).collect();
            for found in &all {
                for (one, other) in all[0].iter().zip(found) {
                    let error = (one - other).abs();
                    assert!(
                        error <= 1e-4 * one.abs().max(1.0),
                        "{}, {rows} rows: {one} and {other}",
                        B::FORMAT
                    );
                }
            }
        }
    }

    /// Products are only tested as a whole with the instructions of this processor.
    #[test]
    fn every_kind_of_lanes_gives_the_same_to_a_few_digits() {
        check::<Q4_0>();
        check::<Q4_1>();
        check::<Q5_0>();
        check::<Q5_1>();
        check::<Q8_0>();
        check::<Q2K>();
        check::<Q3K>();
        check::<Q4K>();
        check::<Q5K>();
        check::<Q6K>();
        check::<Iq4Nl>();
        check::<Iq4Xs>();
    }
}
