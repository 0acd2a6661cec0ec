//! Floating-point numbers of eight bits: a sign, four bits of exponent and three of fraction ([OCP 8-bit
//! Floating Point
//! Specification](https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8-revision-1-0-2023-12-01-pdf-1),
//! e4m3: no infinities, 448 is the largest).

/// The largest number.
pub(crate) const LARGEST_NUMBER: f32 = 448.0;
/// The smallest number whose fraction has three bits; those below are multiples of 2⁻⁹.
const LEAST_NORMAL: f32 = 1.0 / 64.0;

/// Rounds a number to the nearest one that is at most 448 in size, with ties to even.
pub(crate) fn round(number: f32) -> u8 {
    let size = number.abs().min(LARGEST_NUMBER);
    let bits = if size < LEAST_NORMAL {
        (size * 512.0).round_ties_even() as u32
    } else {
        // Three bits of the fraction remain; the exponent counts from 2⁻⁷ instead of 2⁻¹²⁷.
        let bits = size.to_bits();
        ((bits + 0x7_ffff + (bits >> 20 & 1)) >> 20) - (120 << 3)
    };
    bits as u8 | if number.is_sign_negative() { 0x80 } else { 0 }
}

/// Returns the number with these bits, which are never a NaN if they come from [`round`].
#[inline(always)]
pub(crate) fn widen(bits: u8) -> f32 {
    // A subnormal number becomes a subnormal number in `f32`, 2¹²⁰ times smaller.
    let bits = u32::from(bits);
    f32::from_bits((bits & 0x80) << 24 | (bits & 0x7f) << 20) * TWO_TO_120
}

/// The factor between the exponents of `f32` and those of eight bits.
pub(crate) const TWO_TO_120: f32 = f32::from_bits((127 + 120) << 23);

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number by the definition.
    fn defined(bits: u8) -> f64 {
        let (exponent, fraction) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
        let size = match exponent {
            0 => fraction / 8.0 * 2.0_f64.powi(-6),
            _ => (1.0 + fraction / 8.0) * 2.0_f64.powi(exponent - 7),
        };
        if bits & 0x80 == 0 { size } else { -size }
    }

    fn all() -> impl Iterator<Item = u8> {
        (0..=255).filter(|bits| bits & 0x7f != 0x7f)
    }

    #[test]
    fn numbers_are_those_of_the_definition() {
        for bits in all() {
            assert_eq!(f64::from(widen(bits)), defined(bits), "{bits:#x}");
            assert_eq!(round(widen(bits)), bits, "a number is its own nearest");
        }
        assert_eq!(widen(0x7e), LARGEST_NUMBER);
        assert!(widen(0x80).is_sign_negative() && widen(0x80) == 0.0);
    }

    /// Between two numbers, the nearer one is found, or in the middle the one whose last bit is 0.
    #[test]
    fn the_nearest_number_is_found() {
        for low in 0..0x7e_u8 {
            let (one, other) = (widen(low), widen(low + 1));
            let middle = (one + other) / 2.0;
            let even = if low & 1 == 0 { low } else { low + 1 };
            for (number, nearest) in [
                (middle, even),
                (f32::from_bits(middle.to_bits() - 1), low),
                (f32::from_bits(middle.to_bits() + 1), low + 1),
            ] {
                assert_eq!(round(number), nearest, "{number}");
                assert_eq!(round(-number), nearest | 0x80, "{number}");
            }
        }
        assert_eq!(round(f32::from_bits(1)), 0);
        assert_eq!(round(460.0), 0x7e);
    }
}
