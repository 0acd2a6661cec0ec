//! The exponential function for rows of logits.
//!
//! A row of 128,000 logits costs 128,000 exponentials a token, and the compiler cannot vectorise calls into
//! the C library. This one has no branch and no call:
//!
//! ```text
//!   e^x = 2^k · e^f     k = round(x / ln 2), |f| ≤ ln 2 / 2, e^f by its Taylor polynomial of degree 11
//! ```

/// Adding this to a number below 2⁵¹ rounds it to an integer, which is then in the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// `ln 2` in two parts: the first is short, so that its product with `k` is exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Below this the result would be subnormal, and zero is returned.
const LEAST_EXPONENT: f64 = -708.0;
/// 1/11!, 1/10!, … 1/0!.
const TERMS: [f64; 12] = [
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// Returns `e^x` for `x ≤ 0` with a relative error of 1e-14; zero below -708, one above zero, NaN for NaN.
pub(in crate::law) fn exp(x: f64) -> f64 {
    let clamped = x.clamp(LEAST_EXPONENT, 0.0);
    let shifted = clamped * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let f = clamped - k * LN2_HIGH - k * LN2_LOW;
    let polynomial = TERMS.iter().fold(0.0, |sum, term| sum * f + term);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if x < LEAST_EXPONENT {
        0.0
    } else {
        polynomial * power
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_standard_library() {
        for step in 0..708_000 {
            let x = -f64::from(step) / 1000.0;
            let (ours, theirs) = (exp(x), x.exp());
            assert!(
                (ours / theirs - 1.0).abs() < 1e-14,
                "e^{x}: {ours} against {theirs}"
            );
        }
    }

    #[test]
    fn ends_are_right() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert!(exp(f64::NAN).is_nan());
    }
}
