//! Exact rationals as a number type of the library.

use std::ops::{Add, Div, Mul, Sub};

use lexiform_law::Weight;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

/// A rational number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exact(BigRational);

/// `numerator / denominator`.
pub(crate) fn ratio(numerator: i64, denominator: i64) -> Exact {
    Exact(BigRational::new(
        BigInt::from(numerator),
        BigInt::from(denominator),
    ))
}

impl Exact {
    pub(crate) fn to_f64(&self) -> f64 {
        self.0.to_f64().expect("a small rational is a float")
    }
}

macro_rules! forward {
    ($trait:ident, $method:ident) => {
        impl $trait for Exact {
            type Output = Exact;
            fn $method(self, other: Exact) -> Exact {
                Exact(self.0.$method(other.0))
            }
        }
    };
}

forward!(Add, add);
forward!(Sub, sub);
forward!(Mul, mul);
forward!(Div, div);

impl Weight for Exact {
    fn zero() -> Self {
        Exact(BigRational::zero())
    }

    fn one() -> Self {
        Exact(BigRational::one())
    }

    fn ln(&self) -> f64 {
        self.to_f64().ln()
    }
}

/// The sum of some rationals.
pub(crate) fn total<'a>(weights: impl IntoIterator<Item = &'a Exact>) -> Exact {
    weights.into_iter().cloned().fold(Exact::zero(), Add::add)
}

/// A small generator, so that the random cases are the same on every machine.
pub(crate) struct Cases(pub(crate) u64);

impl Cases {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A random law over `len` tokens with at most three quarters of them possible or more.
    pub(crate) fn row(&mut self, len: usize) -> Vec<Exact> {
        let mut weights: Vec<i64> = (0..len).map(|_| self.below(10).pow(2) as i64).collect();
        weights[self.below(len as u64) as usize] += 5;
        let sum: i64 = weights.iter().sum();
        weights.into_iter().map(|weight| ratio(weight, sum)).collect()
    }
}
