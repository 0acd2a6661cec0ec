//! Weights as logarithms.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Sub};

use crate::law::{Chooser, Place, Seeded, Weight};

/// A weight that is stored as its natural logarithm, for products of so many probabilities that an `f64`
/// would underflow to zero.
///
/// Sums and differences are as precise as the larger term; products and quotients of any size are exact to
/// rounding.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct LogWeight(f64);

impl LogWeight {
    /// Creates the weight with this logarithm; minus infinity is the weight zero.
    pub fn from_ln(ln: f64) -> Self {
        LogWeight(ln)
    }
}

impl Add for LogWeight {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (high, low) = match self.0 >= other.0 {
            true => (self.0, other.0),
            false => (other.0, self.0),
        };
        match high == f64::NEG_INFINITY {
            true => self,
            false => LogWeight(high + (low - high).exp().ln_1p()),
        }
    }
}

/// Subtracts weights; the result is zero if rounding has made the second larger.
impl Sub for LogWeight {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        match self.0.partial_cmp(&other.0) {
            Some(Ordering::Greater) => LogWeight(self.0 + (-(other.0 - self.0).exp()).ln_1p()),
            _ => LogWeight(f64::NEG_INFINITY),
        }
    }
}

impl Mul for LogWeight {
    type Output = Self;

    #[expect(clippy::suspicious_arithmetic_impl, reason = "logarithms of factors add up")]
    fn mul(self, other: Self) -> Self {
        LogWeight(self.0 + other.0)
    }
}

impl Div for LogWeight {
    type Output = Self;

    #[expect(clippy::suspicious_arithmetic_impl, reason = "logarithms of factors add up")]
    fn div(self, other: Self) -> Self {
        LogWeight(self.0 - other.0)
    }
}

impl Weight for LogWeight {
    fn zero() -> Self {
        LogWeight(f64::NEG_INFINITY)
    }

    fn one() -> Self {
        LogWeight(0.0)
    }

    fn ln(&self) -> f64 {
        self.0
    }
}

/// Draws in proportion to each weight, computed relative to the largest.
impl Chooser<LogWeight> for Seeded {
    fn choose(&mut self, place: Place, weights: &[LogWeight]) -> usize {
        let most = weights
            .iter()
            .fold(f64::NEG_INFINITY, |most, weight| most.max(weight.0));
        let relative: Vec<f64> = weights.iter().map(|weight| (weight.0 - most).exp()).collect();
        self.choose(place, &relative)
    }
}
