//! Matrices that rows are multiplied with by loops of our own: as they are stored, or in eight bits.
//!
//! ```text
//!   stored   w[out][in], in f32 or bfloat16
//!   int8     w[out][in] ≈ scale[out] · number[out][in]        scale[out] = max |w[out][·]| / 127
//! ```
//!
//! A pass of few rows is as fast as its weights come from memory, so that half the bytes are up to half the time. What is
//! computed is then another model: each weight is off by up to half a scale, which in a row of normal numbers is a hundredth of
//! their standard deviation. Activations stay in `f32`; what is rounded is the matrix alone, once, when it is loaded.
//!
//! Symmetric, with a scale for each row, is what needs no more than one multiplication for each sum. Groups of a row with scales
//! of their own would round less, and cost a multiplication and an addition a group.

use super::fused::floats;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The largest number of a quantised row; the one that is left over, -128, would have no opposite.
const MOST: f32 = 127.0;

/// A matrix in memory, `[out, in]`, contiguous.
#[derive(Debug)]
pub(crate) enum Matrix {
    /// In `f32` or bfloat16.
    Stored(Tensor),
    /// In eight bits, with a scale for each row.
    Int8 {
        /// `[out, in]` from -127 to 127.
        numbers: Tensor,
        /// `[out]` in `f32`.
        scales: Tensor,
    },
}

impl Matrix {
    /// The same numbers for another who reads them.
    pub(crate) fn share(&self) -> Self {
        match self {
            Matrix::Stored(weight) => Matrix::Stored(weight.shallow_clone()),
            Matrix::Int8 { numbers, scales } => Matrix::Int8 {
                numbers: numbers.shallow_clone(),
                scales: scales.shallow_clone(),
            },
        }
    }

    /// A stored matrix in eight bits: to the nearest number, of two the even one. A row with a number that is not finite becomes
    /// one of NaN, as its products would be without this.
    pub(crate) fn int8(weight: &Tensor) -> Result<Matrix> {
        let weight = weight.f_to_kind(Kind::Float)?.f_contiguous()?;
        let [rows, columns] = [weight.size()[0], weight.size()[1]];
        let mut numbers = Vec::with_capacity(weight.numel());
        let mut scales = Vec::with_capacity(rows as usize);
        for row in floats(&weight).chunks_exact((columns as usize).max(1)) {
            let scale = scale(row);
            let number = |weight: &f32| (weight / scale).round_ties_even().clamp(-MOST, MOST) as i8;
            numbers.extend(row.iter().map(number));
            scales.push(scale);
        }
        Ok(Matrix::Int8 {
            numbers: Tensor::f_from_slice(&numbers)?.f_view([rows, columns])?,
            scales: Tensor::f_from_slice(&scales)?,
        })
    }

    /// Matrices with as many columns, one below the other.
    ///
    /// # Panics
    /// Some are stored, and others not.
    pub(crate) fn stacked(mut parts: Vec<Matrix>) -> Result<Matrix> {
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let (mut rows, mut all_scales) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Matrix::Stored(weight) => rows.push(weight),
                Matrix::Int8 { numbers, scales } => {
                    rows.push(numbers);
                    all_scales.push(scales);
                }
            }
        }
        let stacked = Tensor::f_cat(&rows, 0)?;
        if all_scales.is_empty() {
            return Ok(Matrix::Stored(stacked));
        }
        assert_eq!(all_scales.len(), rows.len(), "matrices of one format");
        Ok(Matrix::Int8 {
            numbers: stacked,
            scales: Tensor::f_cat(&all_scales, 0)?,
        })
    }
}

/// What the numbers of a row are multiples of; 0 for a row of zeros, and NaN for one that is not finite.
fn scale(row: &[f32]) -> f32 {
    let most = row.iter().fold(0.0_f32, |most, weight| most.max(weight.abs()));
    match row.iter().all(|weight| weight.is_finite()) {
        true => most / MOST,
        false => f32::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int8(rows: &[&[f32]]) -> (Vec<i8>, Vec<f32>) {
        let columns = rows[0].len() as i64;
        match Matrix::int8(&Tensor::from_slice(&rows.concat()).view([-1, columns])).unwrap() {
            Matrix::Int8 { numbers, scales } => (
                Vec::try_from(&numbers.view([-1])).unwrap(),
                Vec::try_from(&scales).unwrap(),
            ),
            Matrix::Stored(_) => panic!("not in eight bits"),
        }
    }

    #[test]
    fn numbers_are_the_nearest_multiples_of_the_scale_of_their_row() {
        let (numbers, scales) = int8(&[&[127.0, -1.0, 0.4, 2.5], &[0.5, -0.5, 0.25, 0.0]]);
        assert_eq!(numbers, [127, -1, 0, 2, 127, -127, 64, 0]);
        assert_eq!(scales, [1.0, 0.5 / 127.0]);
    }

    #[test]
    fn no_weight_is_off_by_more_than_half_a_scale() {
        let row: Vec<f32> = (0..999)
            .map(|number| ((number * 7919) % 1013) as f32 / 506.5 - 1.0)
            .collect();
        let (numbers, scales) = int8(&[&row]);
        for (weight, number) in row.iter().zip(numbers) {
            let off = (f64::from(*weight) - f64::from(number) * f64::from(scales[0])).abs();
            assert!(off <= 0.500_01 * f64::from(scales[0]), "{weight} became {number}");
        }
    }

    #[test]
    fn rows_without_a_scale_are_zeros_or_nan() {
        let smallest = f32::from_bits(1);
        let (numbers, scales) = int8(&[
            &[0.0, -0.0],
            &[smallest, 0.0],
            &[f32::INFINITY, 1.0],
            &[f32::NAN, 1.0],
        ]);
        assert_eq!(scales[..2], [0.0, 0.0]);
        assert!(scales[2..].iter().all(|scale| scale.is_nan()));
        assert_eq!(numbers[..2], [0, 0]);
    }

    #[test]
    fn parts_are_stacked_with_their_scales() {
        let part = |row: &[f32]| Matrix::int8(&Tensor::from_slice(row).view([1, -1])).unwrap();
        match Matrix::stacked(vec![part(&[127.0, 1.0]), part(&[254.0, 2.0])]).unwrap() {
            Matrix::Int8 { numbers, scales } => {
                assert_eq!(numbers, Tensor::from_slice(&[127i8, 1, 127, 1]).view([2, 2]));
                assert_eq!(scales, Tensor::from_slice(&[1.0_f32, 2.0]));
            }
            Matrix::Stored(_) => panic!("not in eight bits"),
        }
    }
}
