//! The number type of probabilities.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Sub};

/// A probability or a weight: `f64` in production, an exact rational where a law is to be computed exactly.
pub trait Weight:
    Clone + Debug + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// Returns zero.
    fn zero() -> Self;
    /// Returns one.
    fn one() -> Self;
    /// Returns the natural logarithm, minus infinity for zero.
    fn ln(&self) -> f64;
    /// Returns `true` if this is greater than zero; `false` for NaN.
    fn is_positive(&self) -> bool {
        *self > Self::zero()
    }
    /// Returns the smaller of this and `bound`.
    fn at_most(self, bound: Self) -> Self {
        if self > bound { bound } else { self }
    }
}

impl Weight for f64 {
    fn zero() -> Self {
        0.0
    }

    fn one() -> Self {
        1.0
    }

    fn ln(&self) -> f64 {
        f64::ln(*self)
    }
}

/// Returns the sum of weights, from left to right.
pub(crate) fn sum<'a, W: Weight + 'a>(weights: impl IntoIterator<Item = &'a W>) -> W {
    weights
        .into_iter()
        .fold(W::zero(), |total, weight| total + weight.clone())
}
