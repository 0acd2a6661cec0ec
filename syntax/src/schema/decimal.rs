//! Exact decimal numbers, for comparing the bounds, multiples and constants of a schema.
//!
//! A value is `±0.d₁d₂d₃… × 10^point` with `d₁ ≠ 0` and no trailing zero, so equal values have equal fields,
//! and the order of two magnitudes is the order of `(point, digits)`. No floating-point number is involved.

use std::cmp::Ordering;

/// A decimal number of any precision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Box<[u8]>,
    point: i64,
}

/// A number in the notation without an exponent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) negative: bool,
    /// The digits before the point, without leading zeros, or `0` if there are none.
    pub(crate) whole: Vec<u8>,
    /// The digits after the point, without trailing zeros.
    pub(crate) fraction: Vec<u8>,
}

impl Decimal {
    /// Parses a JSON number; returns `None` if the exponent does not fit.
    pub(crate) fn parse(literal: &str) -> Option<Decimal> {
        let (negative, rest) = match literal.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, literal.strip_prefix('+').unwrap_or(literal)),
        };
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], rest[at + 1..].parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if !(whole.bytes().chain(fraction.bytes())).all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let point = exponent.checked_add(whole.len() as i64)?;
        Decimal::normal(negative, &all, point)
    }

    fn normal(negative: bool, digits: &[u8], point: i64) -> Option<Decimal> {
        let Some(first) = digits.iter().position(|&digit| digit != b'0') else {
            return Some(Decimal::zero());
        };
        let last = digits
            .iter()
            .rposition(|&digit| digit != b'0')
            .map_or(0, |at| at + 1);
        let point = point.checked_sub(first as i64)?;
        Some(Decimal {
            negative,
            digits: digits[first..last].into(),
            point,
        })
    }

    /// Returns 0.
    pub(crate) fn zero() -> Decimal {
        Decimal {
            negative: false,
            digits: Box::new([]),
            point: 0,
        }
    }

    /// Returns 1.
    pub(crate) fn one() -> Decimal {
        Decimal {
            negative: false,
            digits: Box::new([b'1']),
            point: 1,
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative
    }

    /// Returns `true` if the value has no fractional part.
    pub(crate) fn is_integer(&self) -> bool {
        self.is_zero() || self.digits.len() as i64 <= self.point
    }

    /// Returns the value as a count, if it is a whole number from 0 to `u64::MAX`.
    pub(crate) fn to_u64(&self) -> Option<u64> {
        if self.negative || !self.is_integer() || self.point > 20 {
            return None;
        }
        std::str::from_utf8(&self.plain().whole).ok()?.parse().ok()
    }

    /// Returns `true` if the point is within `places` of the digits, so that the number can be written out.
    pub(crate) fn is_writable(&self, places: i64) -> bool {
        self.point.abs() <= places && self.digits.len() as i64 <= places
    }

    /// Returns the scientific exponent: the value is `d₁.d₂d₃… × 10^exponent`.
    pub(crate) fn exponent(&self) -> i64 {
        self.point - 1
    }

    /// Returns the significant digits, as ASCII.
    pub(crate) fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// Returns the absolute value.
    pub(crate) fn magnitude(&self) -> Decimal {
        Decimal {
            negative: false,
            ..self.clone()
        }
    }

    /// Returns the number in the notation without an exponent.
    pub(crate) fn plain(&self) -> Plain {
        let count = self.digits.len();
        let zeros = |n: i64| std::iter::repeat_n(b'0', n.max(0) as usize);
        let split = self.point.clamp(0, count as i64) as usize;
        let mut whole: Vec<u8> = self.digits[..split].to_vec();
        whole.extend(zeros(self.point - count as i64));
        if whole.is_empty() || self.is_zero() {
            whole = vec![b'0'];
        }
        let fraction = zeros(-self.point)
            .chain(self.digits[split..].iter().copied())
            .collect();
        Plain {
            negative: self.negative,
            whole,
            fraction: if self.is_zero() { Vec::new() } else { fraction },
        }
    }

    fn cmp_magnitude(&self, other: &Decimal) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => self
                .point
                .cmp(&other.point)
                .then_with(|| self.digits.cmp(&other.digits)),
        }
    }

    /// Returns the least whole number that is not below the value (that is above it, if `strictly`), or
    /// `None` if it has too many digits.
    pub(crate) fn ceil(&self, strictly: bool) -> Option<i128> {
        let floor = self.floor(false)?;
        if self.is_integer() && !strictly {
            Some(floor)
        } else {
            floor.checked_add(1)
        }
    }

    /// Returns the greatest whole number that is not above the value (that is below it, if `strictly`).
    pub(crate) fn floor(&self, strictly: bool) -> Option<i128> {
        if self.point > 36 {
            return None;
        }
        let Plain {
            negative,
            whole,
            fraction,
        } = self.plain();
        let whole: i128 = std::str::from_utf8(&whole).ok()?.parse().ok()?;
        let whole = if negative { -whole } else { whole };
        let floor = if negative && !fraction.is_empty() {
            whole - 1
        } else {
            whole
        };
        Some(if strictly && fraction.is_empty() {
            floor - 1
        } else {
            floor
        })
    }

    /// Returns `mantissa` and `exponent` with the value `mantissa × 10^exponent`, where the mantissa is not a
    /// multiple of ten, or `None` if it has too many digits.
    pub(crate) fn scaled(&self) -> Option<(u64, i64)> {
        if self.digits.len() > 18 {
            return None;
        }
        let mantissa = self
            .digits
            .iter()
            .fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        Some((mantissa, self.point - self.digits.len() as i64))
    }

    /// Checks whether the value is a whole multiple of `step`; returns `None` if `step` has too many digits
    /// to decide.
    pub(crate) fn is_multiple_of(&self, step: &Decimal) -> Option<bool> {
        let (divisor, step_exponent) = step.scaled()?;
        if self.is_zero() {
            return Some(true);
        }
        let shift = self.point - self.digits.len() as i64 - step_exponent;
        if shift < 0 || divisor == 0 {
            // The last digit is not zero, so no number that ends in a zero divides the value.
            return Some(false);
        }
        let modulus = u128::from(divisor);
        let rest = self.digits.iter().fold(0u128, |rest, digit| {
            (rest * 10 + u128::from(digit - b'0')) % modulus
        });
        Some((rest * power_of_ten(shift, modulus)).is_multiple_of(modulus))
    }

    /// Returns the multiples of a positive number between two bounds, ends included, or `None` if there are
    /// more than `most` or they have too many digits.
    pub(crate) fn multiples_between(
        &self,
        low: &Decimal,
        high: &Decimal,
        most: i128,
    ) -> Option<Vec<Decimal>> {
        let (step, exponent) = self.scaled()?;
        let step = i128::from(step);
        let in_units = |bound: &Decimal| {
            let point = bound.point.checked_sub(exponent)?;
            Some(Decimal {
                point: if bound.is_zero() { bound.point } else { point },
                ..bound.clone()
            })
        };
        let (low, high) = (in_units(low)?.ceil(false)?, in_units(high)?.floor(false)?);
        let first = low.div_euclid(step) + i128::from(low.rem_euclid(step) != 0);
        let last = high.div_euclid(step);
        if last.checked_sub(first)? >= most {
            return None;
        }
        (first..=last)
            .map(|count| Decimal::parse(&format!("{}e{exponent}", count.checked_mul(step)?)))
            .collect()
    }

    /// Returns the multiples of a positive number that are nearest to a bound and not below it (not above it,
    /// if `down`).
    pub(crate) fn multiples_from(&self, bound: &Decimal, down: bool, count: i128) -> Option<Vec<Decimal>> {
        let (step, exponent) = self.scaled()?;
        let step = i128::from(step);
        let moved = Decimal {
            point: if bound.is_zero() {
                bound.point
            } else {
                bound.point.checked_sub(exponent)?
            },
            ..bound.clone()
        };
        let first = match down {
            true => moved.floor(false)?.div_euclid(step),
            false => -(moved.ceil(false)?.checked_neg()?.div_euclid(step)),
        };
        let times = (0..count).map(|at| {
            if down {
                first.checked_sub(at)
            } else {
                first.checked_add(at)
            }
        });
        times
            .map(|times| Decimal::parse(&format!("{}e{exponent}", times?.checked_mul(step)?)))
            .collect()
    }

    /// Returns the least common multiple of two positive numbers, or `None` if it has too many digits.
    pub(crate) fn common_multiple(&self, other: &Decimal) -> Option<Decimal> {
        let (left, left_exponent) = self.scaled()?;
        let (right, right_exponent) = other.scaled()?;
        let exponent = left_exponent.min(right_exponent);
        let widen = |value: u64, from: i64| {
            let zeros = u32::try_from(from - exponent).ok()?;
            u128::from(value).checked_mul(10u128.checked_pow(zeros)?)
        };
        let (left, right) = (widen(left, left_exponent)?, widen(right, right_exponent)?);
        let multiple = (left / greatest_divisor(left, right)).checked_mul(right)?;
        let digits = multiple.to_string();
        Decimal::normal(
            false,
            digits.as_bytes(),
            exponent.checked_add(digits.len() as i64)?,
        )
    }
}

fn power_of_ten(mut exponent: i64, modulus: u128) -> u128 {
    let (mut base, mut result) = (10 % modulus, 1 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    result
}

fn greatest_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        if !self.is_writable(40) {
            let digits = String::from_utf8_lossy(&self.digits);
            return write!(f, "{sign}0.{digits}e{}", self.point);
        }
        let Plain { whole, fraction, .. } = self.plain();
        write!(f, "{sign}{}", String::from_utf8_lossy(&whole))?;
        if fraction.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", String::from_utf8_lossy(&fraction))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_between_bounds_are_exact() {
        let number = |text: &str| Decimal::parse(text).expect("a number");
        let between = |step: &str, low: &str, high: &str| {
            let found = number(step).multiples_between(&number(low), &number(high), 10);
            found.map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            between("3", "-4", "5"),
            Some(["-3", "0", "3"].map(str::to_owned).to_vec())
        );
        assert_eq!(
            between("0.25", "0.3", "0.8"),
            Some(["0.5", "0.75"].map(str::to_owned).to_vec())
        );
        assert_eq!(between("100", "1", "99"), Some(Vec::new()));
        assert_eq!(between("1", "0", "10"), None);
        assert_eq!(between("1", "0", "1e40"), None);
    }

    fn dec(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    #[test]
    fn equal_values_are_equal_however_they_are_written() {
        for (left, right) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.001", "1E-3"),
            ("-0", "0.00"),
            ("12.50e1", "125"),
        ] {
            assert_eq!(dec(left), dec(right), "{left} = {right}");
        }
    }

    #[test]
    fn order_is_by_value() {
        let sorted = [
            "-1e30", "-10.5", "-10.49", "-0.001", "0", "1e-30", "0.9", "1", "1.0001", "9.99", "10", "1e400",
        ];
        for pair in sorted.windows(2) {
            assert!(dec(pair[0]) < dec(pair[1]), "{} < {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn multiples_begin_at_a_bound() {
        let near = |step: &str, bound: &str, down: bool| {
            let found = dec(step).multiples_from(&dec(bound), down, 3).expect("small");
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(near("0.75", "1", false), ["1.5", "2.25", "3"]);
        assert_eq!(near("7", "-20", false), ["-14", "-7", "0"]);
        assert_eq!(near("7", "-20", true), ["-21", "-28", "-35"]);
        assert_eq!(near("5", "10", true), ["10", "5", "0"]);
    }

    #[test]
    fn plain_spelling_has_no_exponent() {
        for (text, plain) in [
            ("1e3", "1000"),
            ("-12.50", "-12.5"),
            ("5e-4", "0.0005"),
            ("0", "0"),
            ("-0.0", "0"),
        ] {
            assert_eq!(dec(text).to_string(), plain);
        }
    }

    #[test]
    fn floor_and_ceiling_respect_the_sign() {
        let cases = [
            ("1.5", 1, 2),
            ("-1.5", -2, -1),
            ("3", 3, 3),
            ("-0.2", -1, 0),
            ("0", 0, 0),
        ];
        for (text, floor, ceil) in cases {
            assert_eq!(
                (dec(text).floor(false), dec(text).ceil(false)),
                (Some(floor), Some(ceil)),
                "{text}"
            );
        }
        assert_eq!((dec("3").floor(true), dec("3").ceil(true)), (Some(2), Some(4)));
        assert_eq!(
            (dec("2.5").floor(true), dec("2.5").ceil(true)),
            (Some(2), Some(3))
        );
    }

    #[test]
    fn multiples_are_exact() {
        assert_eq!(dec("4.35").is_multiple_of(&dec("0.01")), Some(true));
        assert_eq!(dec("4.351").is_multiple_of(&dec("0.01")), Some(false));
        assert_eq!(dec("1e308").is_multiple_of(&dec("0.123456789")), Some(false));
        assert_eq!(dec("0").is_multiple_of(&dec("7")), Some(true));
        assert_eq!(dec("6").common_multiple(&dec("0.4")), Some(dec("6")));
        assert_eq!(dec("3").common_multiple(&dec("0.25")), Some(dec("3")));
        assert_eq!(dec("7").common_multiple(&dec("11")), Some(dec("77")));
    }
}
