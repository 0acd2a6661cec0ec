//! Products of rows with a matrix on the CPU, by loops of our own: each weight is read once for several rows.
//!
//! ```text
//!                 out[row][column] = Σ x[row][k] · w[column][k]
//!
//!   w, [columns, k]     four columns at a time ─┐          a part of the work is a run of columns
//!   x, [rows, k]        four rows at a time ────┴─► sixteen sums in registers, a vector of lanes each
//! ```
//!
//! Passes have few rows: one for each text that is written, and one for each draft. There a product is as fast as its
//! weights come from memory, and torch's general product packs them for every call, so that two rows cost twice as much
//! as one. Here eight rows cost as much as two of torch's.
//!
//! - **Weights stay as they are kept.** Those in bfloat16 or in eight bits ([`Matrix`]) are read as such and widened in registers. That
//!   is exact, and half the memory or a quarter. Sums are in `f32`; one of a row of eight bits is multiplied with the scale of the row.
//! - **A row has the same product in any company.** Each sum runs over `k` in the same order, whatever the number of
//!   rows, their place and the number of threads, so that a token does not depend on what else is in the pass. The order depends
//!   on the instructions that the processor has.

use super::fused::{floats, floats_mut};
use super::lanes::{Bf16, E4m3, Lanes, Plain, Weight};
#[cfg(target_arch = "x86_64")]
use super::lanes::{avx2::Lanes8, avx512::Lanes16};
use super::matrix::Matrix;
use crate::torch::crew::Crew;
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// Multiplications that are worth a part of their own, for another thread to take: some two microseconds.
const WORTH: usize = 1 << 17;
/// Parts of a product for each thread, so that one who comes late finds something to do.
const PARTS: usize = 2;
/// The bytes of rows that are multiplied with a run of columns before the next rows are: they stay in the cache of a core.
const NEAR: usize = 256 << 10;
/// Columns of a part are a multiple of so many.
const RUN: usize = 8;

/// `x · wᵀ`, for `x` of `[rows, k]` in `f32` and `w` of `[columns, k]`, both in memory; the result is `[rows, columns]` in `f32`.
pub(crate) fn product(crew: &Crew, x: &Tensor, w: &Matrix) -> Result<Tensor> {
    let (numbers, scales) = match w {
        Matrix::Stored(weight) => (weight, None),
        Matrix::Rounded(rounded) => (&rounded.numbers, Some(floats(&rounded.scales).as_ptr())),
    };
    let x = x.f_contiguous()?;
    check(&x, numbers);
    let (rows, k, columns) = (x.size()[0], x.size()[1], numbers.size()[0]);
    let mut out = Tensor::f_empty([rows, columns], (Kind::Float, Device::Cpu))?;
    let shape = Shape {
        rows: rows as usize,
        k: k as usize,
        columns: columns as usize,
    };
    let all = Pointers {
        x: floats(&x).as_ptr(),
        w: numbers.data_ptr(),
        scales,
        out: floats_mut(&mut out).as_mut_ptr(),
    };
    // SAFETY: the tensors are contiguous, in memory and of these types and sizes, and live until the product is
    // done; nobody else has seen `out`.
    unsafe {
        match numbers.kind() {
            Kind::Float => multiply(crew, shape, all.of::<f32>()),
            Kind::Int8 => multiply(crew, shape, all.of::<i8>()),
            Kind::Uint8 => multiply(crew, shape, all.of::<E4m3>()),
            _ => multiply(crew, shape, all.of::<Bf16>()),
        }
    }
    Ok(out)
}

/// # Safety
/// The pointers lead to as many numbers as the shape says, and nobody else reads or writes those of `out`.
unsafe fn multiply<W: Weight>(crew: &Crew, shape: Shape, all: Pointers<W>) {
    let work = shape.rows * shape.k * shape.columns;
    let most = if crew.threads() == 1 {
        1
    } else {
        PARTS * crew.threads()
    };
    let parts = most.min(work / WORTH).max(1);
    let run = shape.columns.div_ceil(parts).next_multiple_of(RUN);
    crew.each(shape.columns.div_ceil(run.max(1)), &|part| {
        let columns = part * run..(part * run + run).min(shape.columns);
        // SAFETY: the caller keeps the contract, and the columns of parts have nothing in common.
        unsafe { all.columns(shape, columns) }
    });
}

fn check(x: &Tensor, w: &Tensor) {
    let is_right = x.kind() == Kind::Float
        && matches!(w.kind(), Kind::Float | Kind::BFloat16 | Kind::Int8 | Kind::Uint8)
        && x.device() == Device::Cpu
        && w.device() == Device::Cpu
        && w.is_contiguous()
        && x.size()[1] == w.size()[1];
    assert!(
        is_right,
        "a product of rows in f32 with a matrix in memory: {x:?} with {w:?}"
    );
}

/// Of a product.
#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    k: usize,
    columns: usize,
}

/// Where the numbers of a product are.
struct Pointers<W> {
    x: *const f32,
    w: *const W,
    /// What the sum of each column is multiplied with, if it is not whole.
    scales: Option<*const f32>,
    out: *mut f32,
}

impl Pointers<std::ffi::c_void> {
    /// The same where the numbers of the matrix are known to be of this type.
    fn of<W>(self) -> Pointers<W> {
        Pointers {
            x: self.x,
            w: self.w.cast(),
            scales: self.scales,
            out: self.out,
        }
    }
}

impl<W> Clone for Pointers<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Pointers<W> {}

// SAFETY: threads read the same numbers, and write different ones.
unsafe impl<W: Sync> Sync for Pointers<W> {}

impl<W: Weight> Pointers<W> {
    /// These columns of all rows, with the widest instructions that the processor has.
    ///
    /// # Safety
    /// As for [`multiply`], for these columns.
    unsafe fn columns(self, shape: Shape, columns: std::ops::Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: the processor has these instructions, and the caller keeps the contract.
                return unsafe { by_avx512(self, shape, columns) };
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: as above.
                return unsafe { by_avx2(self, shape, columns) };
            }
        }
        // SAFETY: the caller keeps the contract.
        unsafe { self.by::<Plain, 2, 2, 4>(shape, columns) }
    }

    /// These columns, by tiles of `R` rows and `C` columns, or of one row and `ONE` columns.
    ///
    /// # Safety
    /// As above, on a processor that has the instructions of `L`.
    #[inline(always)]
    unsafe fn by<L: Lanes, const R: usize, const C: usize, const ONE: usize>(
        self,
        shape: Shape,
        columns: std::ops::Range<usize>,
    ) {
        let near = (NEAR / (4 * shape.k.max(1))).max(R) / R * R;
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

    /// Some columns of some rows.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn rows<L: Lanes, const R: usize, const C: usize>(
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

    /// `R` rows from `row` on with `C` columns from `column` on.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn tile<L: Lanes, const R: usize, const C: usize>(self, shape: Shape, row: usize, column: usize) {
        let Shape { k, columns, .. } = shape;
        let whole = k / L::COUNT * L::COUNT;
        // SAFETY: all numbers read and written are those of these rows and columns.
        unsafe {
            let (x, w) = (self.x.add(row * k), self.w.add(column * k));
            let mut sums = [[L::zero(); C]; R];
            for at in (0..whole).step_by(L::COUNT) {
                let mut weights = [L::zero(); C];
                for (number, weight) in weights.iter_mut().enumerate() {
                    *weight = W::load::<L>(w.add(number * k + at));
                }
                for (number, sums) in sums.iter_mut().enumerate() {
                    let x = L::load(x.add(number * k + at));
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        *sum = L::add_product(x, weight, *sum);
                    }
                }
            }
            let scale = |number| self.scales.map_or(1.0, |scales| *scales.add(column + number));
            for (row_number, sums) in sums.into_iter().enumerate() {
                for (number, sum) in sums.into_iter().enumerate() {
                    let mut sum = L::sum(sum);
                    for at in whole..k {
                        sum += *x.add(row_number * k + at) * (*w.add(number * k + at)).wide();
                    }
                    *self.out.add((row + row_number) * columns + column + number) = scale(number) * sum;
                }
            }
        }
    }
}

/// # Safety
/// As for [`Pointers::columns`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn by_avx512<W: Weight>(all: Pointers<W>, shape: Shape, columns: std::ops::Range<usize>) {
    // SAFETY: the caller keeps the contract.
    unsafe { all.by::<Lanes16, 4, 4, 8>(shape, columns) }
}

/// # Safety
/// As for [`Pointers::columns`], on a processor with these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn by_avx2<W: Weight>(all: Pointers<W>, shape: Shape, columns: std::ops::Range<usize>) {
    // SAFETY: the caller keeps the contract.
    unsafe { all.by::<Lanes8, 4, 2, 4>(shape, columns) }
}

#[cfg(test)]
mod tests {
    use super::super::e4m3;
    use super::super::matrix::{Rounded, Rounding};
    use super::*;

    /// Numbers from -1 to 1 that bfloat16 can hold, the same in every run.
    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % 257) as f32 / 128.0 - 1.0
        };
        (0..count).map(next).collect()
    }

    fn tensor(values: &[f32], k: usize) -> Tensor {
        Tensor::from_slice(values).view([-1, k as i64])
    }

    fn values(of: &Tensor) -> Vec<f32> {
        Vec::try_from(&of.view([-1])).unwrap()
    }

    const SHAPES: [(usize, usize, usize); 9] = [
        (1, 1, 1),
        (1, 64, 13),
        (2, 65, 3),
        (3, 7, 5),
        (4, 256, 40),
        (5, 100, 9),
        (17, 33, 31),
        (70, 2048, 6),
        (9, 300, 4096),
    ];

    /// The ways in which these weights, which bfloat16 can hold, may be kept.
    fn kept(w: &[f32], k: usize) -> [Matrix; 4] {
        let w = tensor(w, k);
        [
            Matrix::Stored(w.shallow_clone()),
            Matrix::Stored(w.to_kind(Kind::BFloat16)),
            Matrix::Rounded(Rounded::new(Rounding::Int8, &w).unwrap()),
            Matrix::Rounded(Rounded::new(Rounding::Fp8, &w).unwrap()),
        ]
    }

    /// The weights that a matrix stands for.
    fn weights(of: &Matrix) -> Vec<f64> {
        let wide =
            |numbers: &Tensor| Vec::<f64>::try_from(&numbers.to_kind(Kind::Double).view([-1])).unwrap();
        match of {
            Matrix::Stored(weight) => wide(weight),
            Matrix::Rounded(rounded) => {
                let k = rounded.numbers.size()[1] as usize;
                let scales = wide(&rounded.scales)
                    .into_iter()
                    .flat_map(|scale| std::iter::repeat_n(scale, k));
                let numbers = match rounded.rounding {
                    Rounding::Int8 => rounded.numbers.shallow_clone(),
                    Rounding::Fp8 => rounded
                        .numbers
                        .view_dtype(Kind::Float8e4m3fn)
                        .to_kind(Kind::Float),
                };
                wide(&numbers)
                    .into_iter()
                    .zip(scales)
                    .map(|(number, scale)| number * scale)
                    .collect()
            }
        }
    }

    #[test]
    fn products_are_those_of_doubles() {
        for (rows, k, columns) in SHAPES {
            let (x, w) = (numbers(rows * k, 3), numbers(columns * k, 5));
            for matrix in kept(&w, k) {
                let found = product(&Crew::new(3), &tensor(&x, k), &matrix).unwrap();
                let w = weights(&matrix);
                let sum = |row: usize, column: usize| -> f64 {
                    let pairs = x[row * k..][..k].iter().zip(&w[column * k..][..k]);
                    pairs.map(|(x, w)| f64::from(*x) * w).sum()
                };
                for (number, found) in values(&found).into_iter().enumerate() {
                    let expected = sum(number / columns, number % columns);
                    let error = (f64::from(found) - expected).abs();
                    assert!(
                        error < 1e-5 * k as f64,
                        "{rows}×{k}×{columns}, {matrix:?}: {error}"
                    );
                }
            }
        }
    }

    /// Guards against a text that depends on the texts beside it.
    #[test]
    fn a_row_has_the_same_product_in_any_company() {
        for (rows, k, columns) in SHAPES {
            let x = numbers(rows * k, 7);
            for w in kept(&numbers(columns * k, 11), k) {
                let together = values(&product(&Crew::new(4), &tensor(&x, k), &w).unwrap());
                for row in 0..rows {
                    let own = tensor(&x[row * k..][..k], k);
                    let alone = values(&product(&Crew::new(1), &own, &w).unwrap());
                    assert_eq!(alone, together[row * columns..][..columns], "row {row} of {rows}");
                }
            }
        }
    }

    type By<W> = unsafe fn(Pointers<W>, Shape, std::ops::Range<usize>);

    fn ways<W: Weight>() -> Vec<By<W>> {
        unsafe fn plain<W: Weight>(all: Pointers<W>, shape: Shape, columns: std::ops::Range<usize>) {
            // SAFETY: the caller keeps the contract.
            unsafe { all.by::<Plain, 2, 2, 4>(shape, columns) }
        }
        let mut ways: Vec<By<W>> = vec![plain];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                ways.push(by_avx2);
            }
            if is_x86_feature_detected!("avx512f") {
                ways.push(by_avx512);
            }
        }
        ways
    }

    /// What every kind of lanes makes of these rows and columns of 100 numbers, beside what the first one does.
    fn by_all<W: Weight>(x: &[f32], w: &[W], scales: Option<&[f32]>) {
        let shape = Shape {
            rows: x.len() / 100,
            k: 100,
            columns: w.len() / 100,
        };
        let by = |by: By<W>| {
            let mut out = vec![0.0; shape.rows * shape.columns];
            let pointers = Pointers {
                x: x.as_ptr(),
                w: w.as_ptr(),
                scales: scales.map(<[f32]>::as_ptr),
                out: out.as_mut_ptr(),
            };
            // SAFETY: the vectors are as large as the shape says, and the processor was asked.
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
