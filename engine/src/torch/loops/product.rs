//! Products of rows with a matrix on the CPU, by the engine's own loops: each weight is read once for several
//! rows.
//!
//! ```text
//!                 out[row][column] = Σ x[row][k] · w[column][k]
//!
//!   w, [columns, k]     four columns at a time ─┐          a part of the work is a run of columns
//!   x, [rows, k]        four rows at a time ────┴─► sixteen sums in registers, a vector of lanes each
//! ```
//!
//! Passes have few rows: one for each text that is written, and one for each draft. There a product is as
//! fast as its weights come from memory, while torch's general product packs them for every call, so that two
//! rows cost twice as much as one. Here eight rows cost as much as two with torch.
//!
//! - **Weights stay as they are stored.** Weights in half precision, bfloat16, eight bits or blocks
//!   ([`Matrix`]) are read as such and widened in registers. That is exact, and takes half the memory to a
//!   sixth of it. Sums are in `f32`; the sum of a row of eight bits is multiplied by the scale of the row.
//! - **A row has the same product whatever else is in the pass.** Each sum runs over `k` in the same order,
//!   whatever the number of rows, their place and the number of threads, so a token does not depend on the
//!   rest of the pass. The order depends on the instructions that the processor has.

use super::block_product;
use super::fused::{floats, floats_mut};
use super::lanes::{Bf16, E4m3, F16};
use super::matrix::{Matrix, Rounding};
use super::tiles::{Pointers, Shape};
use crate::torch::crew::Crew;
use crate::torch::gguf::blocks::BlockFormat;
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The multiplications for which a separate part, that another thread can take, is worthwhile: some two
/// microseconds.
const WORTH: usize = 1 << 17;
/// The parts of a product for each thread, so that a thread that comes late still finds work.
const PARTS: usize = 2;
/// The columns of a part are a multiple of this number.
const RUN: usize = 8;

/// Computes `x · wᵀ`, for `x` of `[rows, k]` in `f32` and `w` of `[columns, k]`, both in memory; the result
/// is `[rows, columns]` in `f32`.
pub(crate) fn product(crew: &Crew, x: &Tensor, w: &Matrix) -> Result<Tensor> {
    let x = x.f_contiguous()?;
    let (rows, k) = (x.size()[0], x.size()[1]);
    let mut pieces = Vec::new();
    pieces_of(w, &x, &mut pieces);
    let columns: usize = pieces.iter().map(|piece| piece.columns).sum();
    let mut out = Tensor::f_empty([rows, columns as i64], (Kind::Float, Device::Cpu))?;
    let shape = Shape {
        rows: rows as usize,
        k: k as usize,
        columns,
    };
    let (x, to) = (floats(&x).as_ptr(), floats_mut(&mut out).as_mut_ptr());
    // SAFETY: the tensors are contiguous, in memory and of these types and sizes, and live until the product
    // is done; nothing else refers to `out`.
    unsafe { multiply(crew, shape, &pieces, (x, to)) };
    Ok(out)
}

/// A part of a matrix whose rows have one format; its rows are columns of the product.
struct MatrixPiece {
    numbers: Stored,
    columns: usize,
}

/// The format of the numbers of a piece, and their address.
#[derive(Clone, Copy)]
enum Stored {
    F32(*const f32),
    Bf16(*const Bf16),
    F16(*const F16),
    /// Integers, with the scales of rows.
    Int8(*const i8, *const f32),
    E4m3(*const E4m3, *const f32),
    Blocks(BlockFormat, *const u8),
}

// SAFETY: threads only read the numbers.
unsafe impl Sync for MatrixPiece {}

/// Collects the pieces of a matrix, in the order of their columns.
///
/// # Panics
/// Panics if the matrix and `x` do not fit together, or are not in memory.
fn pieces_of(w: &Matrix, x: &Tensor, pieces: &mut Vec<MatrixPiece>) {
    let (tensor, numbers, k) = match w {
        Matrix::Stacked(parts) => return parts.iter().for_each(|part| pieces_of(part, x, pieces)),
        Matrix::Stored(weight) => {
            let from = weight.data_ptr();
            let numbers = match weight.kind() {
                Kind::Float => Stored::F32(from.cast()),
                Kind::Half => Stored::F16(from.cast()),
                _ => Stored::Bf16(from.cast()),
            };
            (weight, numbers, weight.size()[1])
        }
        Matrix::Rounded(rounded) => {
            let (from, scales) = (rounded.numbers.data_ptr(), floats(&rounded.scales).as_ptr());
            let numbers = match rounded.rounding {
                Rounding::Int8 => Stored::Int8(from.cast(), scales),
                Rounding::Fp8 => Stored::E4m3(from.cast(), scales),
            };
            (&rounded.numbers, numbers, rounded.numbers.size()[1])
        }
        Matrix::Blocks(blocks) => {
            let numbers = Stored::Blocks(blocks.format, blocks.bytes.data_ptr().cast());
            (&blocks.bytes, numbers, blocks.columns as i64)
        }
    };
    let kinds = [Kind::Float, Kind::BFloat16, Kind::Half, Kind::Int8, Kind::Uint8];
    let is_right = x.kind() == Kind::Float
        && kinds.contains(&tensor.kind())
        && x.device() == Device::Cpu
        && tensor.device() == Device::Cpu
        && tensor.is_contiguous()
        && x.size()[1] == k;
    assert!(
        is_right,
        "a product of rows in f32 with a matrix in memory: {x:?} with {tensor:?}"
    );
    pieces.push(MatrixPiece {
        numbers,
        columns: tensor.size()[0] as usize,
    });
}

/// A run of columns of a piece.
struct Run {
    piece: usize,
    columns: std::ops::Range<usize>,
    /// The column of the product that is the first one of the piece.
    first: usize,
}

/// # Safety
/// The pointers lead to as many numbers as the shape says, and nothing else reads or writes those of the
/// result.
unsafe fn multiply(crew: &Crew, shape: Shape, pieces: &[MatrixPiece], (x, out): (*const f32, *mut f32)) {
    let work = shape.rows * shape.k * shape.columns;
    let most = if crew.threads() == 1 {
        1
    } else {
        PARTS * crew.threads()
    };
    let parts = most.min(work / WORTH).max(1);
    let each = shape.columns.div_ceil(parts).next_multiple_of(RUN).max(1);
    let (mut runs, mut first) = (Vec::new(), 0);
    for (number, piece) in pieces.iter().enumerate() {
        runs.extend((0..piece.columns).step_by(each).map(|from| Run {
            piece: number,
            columns: from..(from + each).min(piece.columns),
            first,
        }));
        first += piece.columns;
    }
    let ends = RowEnds { x, out };
    crew.each(runs.len(), &|number| {
        let Run {
            piece,
            ref columns,
            first,
        } = runs[number];
        let RowEnds { x, out } = ends.both();
        // SAFETY: the caller keeps the contract, and the columns of different runs are disjoint.
        unsafe { pieces[piece].run(shape, columns.clone(), (x, out.add(first))) }
    });
}

/// The addresses at which rows are read and written.
#[derive(Clone, Copy)]
struct RowEnds {
    x: *const f32,
    out: *mut f32,
}

// SAFETY: threads read the same numbers, and write different ones.
unsafe impl Sync for RowEnds {}

impl RowEnds {
    fn both(&self) -> RowEnds {
        *self
    }
}

impl MatrixPiece {
    /// Computes these columns for all rows.
    ///
    /// # Safety
    /// As for [`multiply`], for these columns.
    unsafe fn run(&self, shape: Shape, columns: std::ops::Range<usize>, (x, out): (*const f32, *mut f32)) {
        // SAFETY: the caller keeps the contract.
        unsafe {
            match self.numbers {
                Stored::F32(w) => Pointers::new(x, w, None, out).columns(shape, columns),
                Stored::Bf16(w) => Pointers::new(x, w, None, out).columns(shape, columns),
                Stored::F16(w) => Pointers::new(x, w, None, out).columns(shape, columns),
                Stored::Int8(w, scales) => Pointers::new(x, w, Some(scales), out).columns(shape, columns),
                Stored::E4m3(w, scales) => Pointers::new(x, w, Some(scales), out).columns(shape, columns),
                Stored::Blocks(format, w) => {
                    block_product::columns(format, Pointers::new(x, w, None, out), shape, columns);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::block_matrix::Blocks;
    use super::super::blocks::tests::{blocks, formats};
    use super::super::matrix::Rounded;
    use super::super::tiles::tests::numbers;
    use super::*;

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

    /// Returns these weights, which bfloat16 can hold, in the ways in which they may be kept.
    fn kept(w: &[f32], k: usize) -> [Matrix; 6] {
        let w = tensor(w, k);
        let first = (w.size()[0] / 2).max(1);
        [
            Matrix::Stored(w.to_kind(Kind::Half)),
            Matrix::Stacked(vec![
                Matrix::Stored(w.narrow(0, 0, first).contiguous()),
                Matrix::Stored(
                    w.narrow(0, first, w.size()[0] - first)
                        .to_kind(Kind::BFloat16)
                        .contiguous(),
                ),
            ]),
            Matrix::Stored(w.shallow_clone()),
            Matrix::Stored(w.to_kind(Kind::BFloat16)),
            Matrix::Rounded(Rounded::new(Rounding::Int8, &w).unwrap()),
            Matrix::Rounded(Rounded::new(Rounding::Fp8, &w).unwrap()),
        ]
    }

    /// Returns the weights that a matrix represents.
    fn weights(of: &Matrix) -> Vec<f64> {
        let wide =
            |numbers: &Tensor| Vec::<f64>::try_from(&numbers.to_kind(Kind::Double).view([-1])).unwrap();
        match of {
            Matrix::Stored(weight) => wide(weight),
            Matrix::Blocks(blocks) => wide(&blocks.widened(0, blocks.bytes.size()[0], Kind::Float).unwrap()),
            Matrix::Stacked(parts) => parts.iter().flat_map(weights).collect(),
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

    /// Guards against a text that depends on the other texts in its pass.
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

    /// Returns a matrix of each format of blocks, with rows of `each` blocks.
    fn in_blocks(rows: usize, each: usize) -> impl Iterator<Item = Matrix> {
        formats().map(move |format| {
            let bytes = blocks(format, rows * each, 23);
            let shape = [rows as i64, (each * format.weights()) as i64];
            Matrix::Blocks(Blocks::new(format, &bytes, shape).unwrap())
        })
    }

    /// Products of few rows in registers, and of more rows with a copy in `f32`, are the same numbers, and
    /// agree with those in doubles.
    #[test]
    fn products_with_blocks_are_those_of_doubles_in_any_company() {
        for (columns, each) in [(1, 1), (13, 2), (40, 3)] {
            for matrix in in_blocks(columns, each) {
                let k = weights(&matrix).len() / columns;
                let (x, w) = (numbers(70 * k, 29), weights(&matrix));
                let all = values(&product(&Crew::new(3), &tensor(&x, k), &matrix).unwrap());
                for (number, found) in all.iter().enumerate() {
                    let (row, column) = (number / columns, number % columns);
                    let pairs = x[row * k..][..k].iter().zip(&w[column * k..][..k]);
                    let terms: Vec<f64> = pairs.map(|(x, w)| f64::from(*x) * w).collect();
                    let error = (f64::from(*found) - terms.iter().sum::<f64>()).abs();
                    let size: f64 = terms.iter().map(|term| term.abs()).sum();
                    assert!(error <= 1e-5 * size, "{matrix:?}: {error} of {size}");
                }
                for rows in [1, 2, 3, 4, 5, 8, 9, 16, 17] {
                    let few = tensor(&x[..rows * k], k);
                    let few = values(&product(&Crew::new(1), &few, &matrix).unwrap());
                    assert_eq!(few, all[..rows * columns], "{rows} rows of {matrix:?}");
                }
            }
        }
    }

    #[test]
    fn parts_of_several_formats_are_one_matrix() {
        let parts = || in_blocks(9, 1).filter(|part| weights(part).len() == 9 * 256);
        let columns = parts().count() * 9;
        let x = numbers(3 * 256, 31);
        let together = Matrix::stacked(parts().collect()).unwrap();
        let together = values(&product(&Crew::new(2), &tensor(&x, 256), &together).unwrap());
        for (number, part) in parts().enumerate() {
            let alone = values(&product(&Crew::new(1), &tensor(&x, 256), &part).unwrap());
            for row in 0..3 {
                let found = &together[row * columns + number * 9..][..9];
                assert_eq!(found, &alone[row * 9..][..9]);
            }
        }
    }
}
