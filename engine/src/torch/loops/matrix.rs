//! Matrices that rows are multiplied with: as they are stored, or in eight bits.
//!
//! ```text
//!   stored   w[out][in], in f32, half precision or bfloat16
//!   blocks   the same in few bits, as a GGUF file has them       ([`Blocks`])
//!   int8     w[out][in] ≈ scale[out] · number[out][in]  scale[out] = max |w[out][·]| / 127, integers
//!   fp8      the same                                    scale[out] = max |w[out][·]| / 448, numbers of e4m3
//! ```
//!
//! A pass of few rows is as fast as its weights come from memory, so half the bytes take as little as half
//! the time. The result is then another model. A weight in int8 is off by up to half a scale, which in a row
//! of normal numbers is a hundredth of their standard deviation; a weight in fp8 is off by up to a sixteenth
//! of itself, which is more for large weights and less for small ones. Only the matrix is rounded, once, when
//! it is loaded.
//!
//! Symmetric rounding with a scale for each row needs only one multiplication for each sum. Groups of a row
//! with separate scales would round less, and cost a multiplication and an addition per group.
//!
//! The engine's own loops ([`product`](super::product)) and the kernels on a GPU read eight bits. Torch
//! multiplies with rows that are widened first, some at a time ([`Rounded::apply`]): this is slower than with
//! a matrix that is stored in its kind, and serves for passes that the kernels do not run.

use super::block_matrix::Blocks;
use super::e4m3;
use super::fused::floats;
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The largest integer of a row; the remaining one, -128, would have no opposite.
const MOST_WHOLE: f32 = 127.0;
/// The least number of rows that occupy a thread.
const ROWS_OF_THREAD: usize = 64;
/// The numbers that are widened at once.
const PIECE: i64 = 12 << 20;

/// The kind of the numbers of eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Integers.
    Int8,
    /// Floating-point numbers, e4m3.
    Fp8,
}

/// A matrix in memory, `[out, in]`, contiguous.
#[derive(Debug)]
pub(crate) enum Matrix {
    /// In `f32`, bfloat16 or half precision.
    Stored(Tensor),
    /// In eight bits.
    Rounded(Rounded),
    /// In blocks of few bits, as a file has them.
    Blocks(Blocks),
    /// Matrices of several formats, one below the other.
    Stacked(Vec<Matrix>),
}

/// A matrix in eight bits, with a scale for each row.
#[derive(Debug)]
pub(crate) struct Rounded {
    pub(crate) rounding: Rounding,
    /// `[out, in]`: from -127 to 127, or the bits of e4m3 (as `u8`).
    pub(crate) numbers: Tensor,
    /// `[out]` in `f32`.
    pub(crate) scales: Tensor,
}

impl Matrix {
    /// Returns a copy that shares the numbers.
    pub(crate) fn share(&self) -> Self {
        match self {
            Matrix::Stored(weight) => Matrix::Stored(weight.shallow_clone()),
            Matrix::Rounded(rounded) => Matrix::Rounded(Rounded {
                rounding: rounded.rounding,
                numbers: rounded.numbers.shallow_clone(),
                scales: rounded.scales.shallow_clone(),
            }),
            Matrix::Blocks(blocks) => Matrix::Blocks(blocks.share()),
            Matrix::Stacked(parts) => Matrix::Stacked(parts.iter().map(Matrix::share).collect()),
        }
    }

    /// Stacks matrices with equally many columns, one below the other: as one, if they have one format.
    pub(crate) fn stacked(parts: Vec<Matrix>) -> Result<Matrix> {
        let mut stacked: Vec<Matrix> = Vec::new();
        for part in parts {
            let last = stacked.pop();
            match last {
                None => stacked.push(part),
                Some(last) => match last.below(part)? {
                    Below::One(both) => stacked.push(both),
                    Below::Two(last, part) => stacked.extend([last, part]),
                },
            }
        }
        match stacked.len() {
            1 => Ok(stacked.remove(0)),
            _ => Ok(Matrix::Stacked(stacked)),
        }
    }

    /// Puts another matrix below this one.
    fn below(self, other: Matrix) -> Result<Below> {
        Ok(Below::One(match (self, other) {
            (Matrix::Stored(one), Matrix::Stored(other)) if one.kind() == other.kind() => {
                Matrix::Stored(Tensor::f_cat(&[one, other], 0)?)
            }
            (Matrix::Rounded(one), Matrix::Rounded(other)) if one.rounding == other.rounding => {
                Matrix::Rounded(Rounded {
                    rounding: one.rounding,
                    numbers: Tensor::f_cat(&[one.numbers, other.numbers], 0)?,
                    scales: Tensor::f_cat(&[one.scales, other.scales], 0)?,
                })
            }
            (Matrix::Blocks(one), Matrix::Blocks(other)) if one.format == other.format => {
                Matrix::Blocks(Blocks {
                    bytes: Tensor::f_cat(&[one.bytes, other.bytes], 0)?,
                    ..one
                })
            }
            (one, other) => return Ok(Below::Two(one, other)),
        }))
    }

    /// Returns all numbers, `[out, in]`, in this kind, on the device where they are.
    pub(crate) fn widened(&self, kind: Kind) -> Result<Tensor> {
        match self {
            Matrix::Stored(weight) => weight.f_to_kind(kind),
            Matrix::Rounded(rounded) => rounded.widened(0, rounded.numbers.size()[0], kind),
            Matrix::Blocks(blocks) => blocks.widened(0, blocks.bytes.size()[0], kind),
            Matrix::Stacked(parts) => {
                let parts = parts.iter().map(|part| part.widened(kind));
                Tensor::f_cat(&parts.collect::<Result<Vec<_>>>()?, 0)
            }
        }
    }

    /// Returns the rows with these numbers in `f32`, `[numbers, in]`.
    ///
    /// # Panics
    /// Panics if the matrix is rounded, or has several formats: rows of such a matrix are never looked up.
    pub(crate) fn rows(&self, numbers: &Tensor) -> Result<Tensor> {
        match self {
            Matrix::Stored(weight) => weight.f_index_select(0, numbers),
            Matrix::Blocks(blocks) => {
                let numbers = Vec::<i64>::try_from(numbers)?;
                blocks.rows(numbers.into_iter().map(|number| number as usize))
            }
            Matrix::Rounded(_) | Matrix::Stacked(_) => panic!("rows of a matrix that is no table"),
        }
    }
}

/// The result of putting a matrix below another one.
enum Below {
    One(Matrix),
    Two(Matrix, Matrix),
}

impl Rounded {
    /// Rounds a stored matrix to eight bits: to the nearest numbers, with ties to even. A row with a number
    /// that is not finite becomes one of NaN, like its products without rounding.
    pub(crate) fn new(rounding: Rounding, weight: &Tensor) -> Result<Self> {
        let weight = weight.f_to_kind(Kind::Float)?.f_contiguous()?;
        let [rows, columns] = [weight.size()[0], weight.size()[1]];
        let width = (columns as usize).max(1);
        // A matrix is rounded before any pass runs: all cores are free.
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let each = (rows as usize).div_ceil(threads).max(ROWS_OF_THREAD);
        let parts = std::thread::scope(|scope| {
            let parts = floats(&weight).chunks(each * width);
            let threads: Vec<_> = parts
                .map(|part| scope.spawn(move || round_rows(rounding, part, width)))
                .collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined.collect::<std::thread::Result<Vec<_>>>()
        });
        let parts = parts.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (mut numbers, mut scales) = (Vec::with_capacity(weight.numel()), Vec::new());
        for (more, more_scales) in parts {
            numbers.extend(more);
            scales.extend(more_scales);
        }
        let numbers = Tensor::f_from_slice(&numbers)?.f_view([rows, columns])?;
        Ok(Rounded {
            rounding,
            numbers: match rounding {
                Rounding::Int8 => numbers.f_view_dtype(Kind::Int8)?,
                Rounding::Fp8 => numbers,
            },
            scales: Tensor::f_from_slice(&scales)?,
        })
    }

    /// Moves the matrix to a device.
    pub(crate) fn on(self, device: Device) -> Result<Self> {
        Ok(Rounded {
            rounding: self.rounding,
            numbers: self.numbers.f_to_device(device)?,
            scales: self.scales.f_to_device(device)?,
        })
    }

    /// Computes `x · wᵀ` by torch, with rows of the matrix that are widened to the kind of `x`, some at a
    /// time. This takes additional memory for [`PIECE`] numbers, or one row if that is longer, in `f32` and
    /// in that kind.
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let [rows, columns] = [self.numbers.size()[0], self.numbers.size()[1]];
        let each = (PIECE / columns.max(1)).max(1);
        let pieces = (0..rows).step_by(each as usize).map(|first| {
            let widened = self.widened(first, (rows - first).min(each), x.kind())?;
            x.f_linear(&widened, None::<&Tensor>)
        });
        let mut pieces = pieces.collect::<Result<Vec<_>>>()?;
        match pieces.len() {
            1 => Ok(pieces.remove(0)),
            _ => Tensor::f_cat(&pieces, 1),
        }
    }

    /// Returns `rows` rows from `first` on, in numbers of this kind.
    fn widened(&self, first: i64, rows: i64, kind: Kind) -> Result<Tensor> {
        let numbers = self.numbers.f_narrow(0, first, rows)?;
        let numbers = match self.rounding {
            Rounding::Int8 => numbers,
            Rounding::Fp8 => numbers.f_view_dtype(Kind::Float8e4m3fn)?,
        };
        let scales = self.scales.f_narrow(0, first, rows)?.f_view([-1, 1])?;
        numbers.f_to_kind(Kind::Float)?.f_mul_(&scales)?.f_to_kind(kind)
    }
}

/// Rounds rows of `columns` numbers to eight bits, and returns the scale of each.
fn round_rows(rounding: Rounding, rows: &[f32], columns: usize) -> (Vec<u8>, Vec<f32>) {
    let (mut numbers, mut scales) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows.chunks_exact(columns) {
        let scale = scale(row, rounding);
        match rounding {
            Rounding::Int8 => {
                let whole = |weight: &f32| {
                    (weight / scale).round_ties_even().clamp(-MOST_WHOLE, MOST_WHOLE) as i8 as u8
                };
                numbers.extend(row.iter().map(whole));
            }
            // In a row of zeros, or one with a NaN, the numbers are zeros.
            Rounding::Fp8 if scale > 0.0 => {
                numbers.extend(row.iter().map(|weight| e4m3::round(weight / scale)));
            }
            Rounding::Fp8 => numbers.resize(numbers.len() + row.len(), 0),
        }
        scales.push(scale);
    }
    (numbers, scales)
}

/// Returns the number of which the numbers of a row are multiples; 0 for a row of zeros, and NaN for one that
/// is not finite.
fn scale(row: &[f32], rounding: Rounding) -> f32 {
    let largest = match rounding {
        Rounding::Int8 => MOST_WHOLE,
        Rounding::Fp8 => e4m3::LARGEST_NUMBER,
    };
    let most = row.iter().fold(0.0_f32, |most, weight| most.max(weight.abs()));
    match row.iter().all(|weight| weight.is_finite()) {
        true => most / largest,
        false => f32::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDINGS: [Rounding; 2] = [Rounding::Int8, Rounding::Fp8];

    fn rounded(rounding: Rounding, rows: &[&[f32]]) -> Rounded {
        let columns = rows[0].len() as i64;
        Rounded::new(rounding, &Tensor::from_slice(&rows.concat()).view([-1, columns])).unwrap()
    }

    fn int8(rows: &[&[f32]]) -> (Vec<i8>, Vec<f32>) {
        let rounded = rounded(Rounding::Int8, rows);
        (
            Vec::try_from(&rounded.numbers.view([-1])).unwrap(),
            Vec::try_from(&rounded.scales).unwrap(),
        )
    }

    /// Returns the weights that a matrix represents.
    fn weights(of: &Rounded) -> Vec<f32> {
        let rows = of.scales.size()[0];
        Vec::try_from(&of.widened(0, rows, Kind::Float).unwrap().view([-1])).unwrap()
    }

    #[test]
    fn numbers_are_the_nearest_multiples_of_the_scale_of_their_row() {
        let (numbers, scales) = int8(&[&[127.0, -1.0, 0.4, 2.5], &[0.5, -0.5, 0.25, 0.0]]);
        assert_eq!(numbers, [127, -1, 0, 2, 127, -127, 64, 0]);
        assert_eq!(scales, [1.0, 0.5 / 127.0]);
        let floating = rounded(
            Rounding::Fp8,
            &[&[448.0, -1.0, 0.4, 2.6], &[896.0, 0.001, -0.003, 9.0]],
        );
        assert_eq!(
            weights(&floating),
            [448.0, -1.0, 0.40625, 2.5, 896.0, 0.0, -0.00390625, 9.0]
        );
    }

    #[test]
    fn no_weight_is_off_by_more_than_its_format_says() {
        let row: Vec<f32> = (0..999)
            .map(|number| ((number * 7919) % 1013) as f32 / 506.5 - 1.0)
            .collect();
        for rounding in ROUNDINGS {
            let rounded = rounded(rounding, &[&row]);
            let scale = scale(&row, rounding);
            for (weight, found) in row.iter().zip(weights(&rounded)) {
                let most = match rounding {
                    Rounding::Int8 => scale / 2.0,
                    // Half of the last of four bits; below 2⁻⁶, numbers are multiples of 2⁻⁹.
                    Rounding::Fp8 => (weight.abs() / 16.0).max(scale / 1024.0),
                };
                assert!(
                    (weight - found).abs() <= 1.00001 * most,
                    "{weight} became {found}"
                );
            }
        }
    }

    #[test]
    fn rows_without_a_scale_are_zeros_or_nan() {
        let smallest = f32::from_bits(1);
        let rows: [&[f32]; 4] = [
            &[0.0, -0.0],
            &[smallest, 0.0],
            &[f32::INFINITY, 1.0],
            &[f32::NAN, 1.0],
        ];
        for rounding in ROUNDINGS {
            let found = weights(&rounded(rounding, &rows));
            assert_eq!(found[..4], [0.0; 4]);
            assert!(found[4..].iter().all(|number| number.is_nan()), "{found:?}");
        }
        assert_eq!(int8(&rows).0[..2], [0, 0]);
    }

    #[test]
    fn parts_are_stacked_with_their_scales() {
        let part = |row: &[f32]| Matrix::Rounded(rounded(Rounding::Int8, &[row]));
        match Matrix::stacked(vec![part(&[127.0, 1.0]), part(&[254.0, 2.0])]).unwrap() {
            Matrix::Rounded(rounded) => {
                assert_eq!(
                    rounded.numbers,
                    Tensor::from_slice(&[127i8, 1, 127, 1]).view([2, 2])
                );
                assert_eq!(rounded.scales, Tensor::from_slice(&[1.0_f32, 2.0]));
            }
            other => panic!("{other:?} is not in eight bits"),
        }
    }

    /// A product in pieces equals the one with the whole matrix.
    #[test]
    fn torch_multiplies_with_widened_rows() {
        let columns = PIECE / 5;
        let row = |number: i64| Tensor::f_arange(columns, (Kind::Float, Device::Cpu)).unwrap() * (number + 1);
        let weight = Tensor::stack(&(0..13).map(row).collect::<Vec<_>>(), 0).sin();
        let x = Tensor::ones([2, columns], (Kind::Float, Device::Cpu));
        for rounding in ROUNDINGS {
            let rounded = Rounded::new(rounding, &weight).unwrap();
            let whole = x.linear(&rounded.widened(0, 13, Kind::Float).unwrap(), None::<&Tensor>);
            let found = rounded.apply(&x).unwrap();
            assert_eq!(found.size(), [2, 13]);
            assert!(
                (found - whole).abs().max().double_value(&[]) < 0.5,
                "of sums of a million"
            );
        }
    }
}
