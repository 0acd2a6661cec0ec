//! Products of some rows with some columns, by tiles of sums that stay in registers, with the instructions
//! that the processor has.

use super::lanes::{Lanes, Plain, Weight, added};
#[cfg(target_arch = "x86_64")]
use super::lanes::{avx2::Lanes8, avx512::Lanes16};

/// The bytes of rows that are multiplied with a run of columns before the next rows are: they stay in the
/// cache of a core.
pub(super) const NEAR_BYTES: usize = 256 << 10;

/// How far ahead of the weights that are read memory is prefetched, in bytes.
///
/// Columns are read some at a time, and each is short: processors, which predict reads within a page, do not
/// notice that the columns are adjacent. On an EPYC of family 26 one row reads 2.5 times as fast with
/// prefetching where blocks do not come from the cache; all distances from 6 to 32 KiB are equally good.
pub(super) const AHEAD: usize = 8 << 10;

/// The bytes that memory transfers at once.
pub(super) const LINE: usize = 64;

/// The shape of a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) k: usize,
    /// The columns of the whole product: the distance between one row of the result and the next.
    pub(super) columns: usize,
}

/// The addresses of the numbers of a product.
pub(super) struct Pointers<W> {
    pub(super) x: *const f32,
    pub(super) w: *const W,
    /// The factors of the sums of the columns, if there are any.
    pub(super) scales: Option<*const f32>,
    pub(super) out: *mut f32,
}

impl<W> Pointers<W> {
    pub(super) fn new(x: *const f32, w: *const W, scales: Option<*const f32>, out: *mut f32) -> Self {
        Pointers { x, w, scales, out }
    }
}

impl<W> Clone for Pointers<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Pointers<W> {}

impl<W: Weight> Pointers<W> {
    /// Computes these columns for all rows, with the widest instructions that the processor has.
    ///
    /// # Safety
    /// As for [`multiply`], for these columns.
    pub(super) unsafe fn columns(self, shape: Shape, columns: std::ops::Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                // SAFETY: the processor has these instructions, and the caller keeps the contract.
                return unsafe { by_avx512(self, shape, columns) };
            }
            if has_avx2() {
                // SAFETY: as above.
                return unsafe { by_avx2(self, shape, columns) };
            }
        }
        // SAFETY: the caller keeps the contract.
        unsafe { self.by::<Plain, 2, 2, 4>(shape, columns) }
    }

    /// Computes these columns, by tiles of `R` rows and `C` columns, or of one row and `ONE` columns.
    ///
    /// # Safety
    /// As above, on a processor that has the instructions of `L`.
    #[inline(always)]
    unsafe fn by<L: Lanes, const R: usize, const C: usize, const ONE: usize>(
        self,
        shape: Shape,
        columns: std::ops::Range<usize>,
    ) {
        let near = (NEAR_BYTES / (4 * shape.k.max(1))).max(R) / R * R;
        for first in (0..shape.rows).step_by(near) {
            let rows = first..(first + near).min(shape.rows);
            let mut column = columns.start;
            // SAFETY: all tiles are within the rows and columns of the product.
            unsafe {
                while rows.len() == 1 && column + ONE <= columns.end {
                    self.tile::<L, 1, ONE>(shape, first, column);
                    column += ONE;
                }
                while column + C <= columns.end {
                    self.rows::<L, R, C>(shape, rows.clone(), column);
                    column += C;
                }
                while column < columns.end {
                    self.rows::<L, R, 1>(shape, rows.clone(), column);
                    column += 1;
                }
            }
        }
    }

    /// Computes some columns for some rows.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub(super) unsafe fn rows<L: Lanes, const R: usize, const C: usize>(
        self,
        shape: Shape,
        rows: std::ops::Range<usize>,
        column: usize,
    ) {
        let mut row = rows.start;
        // SAFETY: the caller keeps the contract.
        unsafe {
            while row + R <= rows.end {
                self.tile::<L, R, C>(shape, row, column);
                row += R;
            }
            match rows.end - row {
                3.. => {
                    self.tile::<L, 3, C>(shape, row, column);
                    row += 3;
                }
                2 => {
                    self.tile::<L, 2, C>(shape, row, column);
                    row += 2;
                }
                _ => {}
            }
            while row < rows.end {
                self.tile::<L, 1, C>(shape, row, column);
                row += 1;
            }
        }
    }

    /// Computes `C` columns from `column` on for `R` rows from `row` on.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn tile<L: Lanes, const R: usize, const C: usize>(self, shape: Shape, row: usize, column: usize) {
        let Shape { k, columns, .. } = shape;
        let whole = k / L::COUNT * L::COUNT;
        // SAFETY: all numbers read and written are those of these rows and columns.
        unsafe {
            // With copied columns, `w` points to where the first column would be, before the copy.
            let (x, w) = (self.x.add(row * k), self.w.wrapping_add(column * k));
            let mut sums = [[L::zero(); C]; R];
            for at in (0..whole).step_by(L::COUNT) {
                let mut weights = [L::zero(); C];
                for (number, weight) in weights.iter_mut().enumerate() {
                    let from = w.add(number * k + at);
                    prefetch(from.cast::<u8>().wrapping_add(AHEAD));
                    *weight = W::load::<L>(from);
                }
                for (number, sums) in sums.iter_mut().enumerate() {
                    let x = L::load(x.add(number * k + at));
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        *sum = L::add_product(x, weight, *sum);
                    }
                }
            }
            let scale = |number| self.scales.map_or(1.0, |scales| *scales.add(column + number));
            for (row_number, sums) in added::<L, R, C>(sums).into_iter().enumerate() {
                for (number, mut sum) in sums.into_iter().enumerate() {
                    for at in whole..k {
                        sum += *x.add(row_number * k + at) * (*w.add(number * k + at)).wide();
                    }
                    *self.out.add((row + row_number) * columns + column + number) = scale(number) * sum;
                }
            }
        }
    }
}

/// Prefetches memory, if the processor has an instruction for it; the address may be invalid.
#[inline(always)]
pub(super) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: nothing is read, and prefetching an invalid address does not fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Returns `true` if the processor has all instructions of [`Lanes16`].
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f") && has_avx2()
}

/// Returns `true` if the processor has all instructions of [`Lanes8`].
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

/// # Safety
/// As for [`Pointers::columns`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
unsafe fn by_avx512<W: Weight>(all: Pointers<W>, shape: Shape, columns: std::ops::Range<usize>) {
    // SAFETY: the caller keeps the contract.
    unsafe { all.by::<Lanes16, 4, 4, 8>(shape, columns) }
}

/// # Safety
/// As for [`Pointers::columns`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn by_avx2<W: Weight>(all: Pointers<W>, shape: Shape, columns: std::ops::Range<usize>) {
    // SAFETY: the caller keeps the contract.
    unsafe { all.by::<Lanes8, 4, 2, 4>(shape, columns) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::e4m3;
    use super::super::lanes::E4m3;
    use super::*;

    /// Returns numbers from -1 to 1 that bfloat16 can hold, the same in every run.
    pub(in super::super) fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % 257) as f32 / 128.0 - 1.0
        };
        (0..count).map(next).collect()
    }

    type TiledBy<W> = unsafe fn(Pointers<W>, Shape, std::ops::Range<usize>);

    fn ways<W: Weight>() -> Vec<TiledBy<W>> {
        unsafe fn plain<W: Weight>(all: Pointers<W>, shape: Shape, columns: std::ops::Range<usize>) {
            // SAFETY: the caller keeps the contract.
            unsafe { all.by::<Plain, 2, 2, 4>(shape, columns) }
        }
        let mut ways: Vec<TiledBy<W>> = vec![plain];
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx2() {
                ways.push(by_avx2);
            }
            if has_avx512() {
                ways.push(by_avx512);
            }
        }
        ways
    }

    /// Compares the products of these rows and columns of 100 numbers by every kind of lanes with those of
    /// the first.
    fn by_all<W: Weight>(x: &[f32], w: &[W], scales: Option<&[f32]>) {
        let shape = Shape {
            rows: x.len() / 100,
            k: 100,
            columns: w.len() / 100,
        };
        let by = |by: TiledBy<W>| {
            let mut out = vec![0.0; shape.rows * shape.columns];
            let pointers = Pointers {
                x: x.as_ptr(),
                w: w.as_ptr(),
                scales: scales.map(<[f32]>::as_ptr),
                out: out.as_mut_ptr(),
            };
            // SAFETY: the vectors are as large as the shape says, and the test has checked that the processor
            // has the instructions.
            unsafe { by(pointers, shape, 0..shape.columns) };
            out
        };
        let all: Vec<Vec<f32>> = ways().into_iter().map(by).collect();
        for found in &all[1..] {
            for (one, other) in all[0].iter().zip(found) {
                assert!((one - other).abs() < 1e-4, "{one} and {other}");
            }
        }
    }

    #[test]
    fn every_kind_of_lanes_gives_the_same_to_a_few_digits() {
        let (x, w) = (numbers(600, 13), numbers(1_000, 17));
        by_all(&x, &w, None);
        let eighths: Vec<i8> = w.iter().map(|weight| (weight * 100.0) as i8).collect();
        by_all(&x, &eighths, Some(&[0.01; 10]));
        let floating: Vec<E4m3> = w.iter().map(|&weight| E4m3::of(e4m3::round(weight))).collect();
        by_all(&x, &floating, Some(&[0.5; 10]));
    }
}
