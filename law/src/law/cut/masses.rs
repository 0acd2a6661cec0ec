//! Weights as integers, for cuts that need the total weight of the most likely tokens.
//!
//! A sum of floating-point numbers depends on the order of its terms. Adding from the most likely token down
//! would need a sort, which a device with thousands of threads cannot afford. The sum of integers does not
//! depend on the order: adding the masses of the same tokens in any order gives the same sum.
//!
//! The most likely token has a mass of 2⁴⁴ to 2⁴⁵, so that the weight of each token is rounded by at most
//! 2⁻⁴⁵ of the weight of the best one. This rounding decides only what the last digits of a floating-point
//! sum over as many tokens decided before. The unit is a power of two, so that scaling by it rounds nothing.

/// The number of bits of the most likely token's mass, minus one.
const BITS: u64 = 44;
/// The largest error of a share of a law that is summed in masses: 2²⁰ tokens, each rounded by half of one
/// mass.
pub(super) const ROUNDING: f64 = 1e-7;

/// The conversion of weights into masses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masses {
    unit: f64,
}

impl Masses {
    /// Creates the conversion for a law whose most likely token has this weight.
    pub(super) fn of(best: f64) -> Self {
        let exponent = best.to_bits() >> 52;
        // The largest finite unit, if the best weight is close to zero.
        let unit = (2 * 1023 + BITS - exponent).min(2046);
        Masses {
            unit: f64::from_bits(unit << 52),
        }
    }

    /// Returns the mass of a token of this weight.
    pub(super) fn mass(self, weight: f64) -> u128 {
        whole(weight * self.unit)
    }

    /// Returns the mass of a share of a law of this weight; at least 1.
    pub(super) fn share_of_weight(self, share: f64, weight: f64) -> u128 {
        whole(share * (weight * self.unit)).max(1)
    }

    /// Returns the mass of a share of a law of this mass; at least 1.
    pub(super) fn share_of_mass(share: f64, mass: u128) -> u128 {
        whole(share * mass as f64).max(1)
    }
}

/// Rounds to the nearest integer.
fn whole(number: f64) -> u128 {
    (number + 0.5) as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_token_has_as_many_bits_whatever_it_weighs() {
        for weight in [1.0, 0.75, 3e-20, 1e-280] {
            let masses = Masses::of(weight);
            let mass = masses.mass(weight);
            assert!((1 << BITS..1 << (BITS + 1)).contains(&mass), "{mass}");
            assert_eq!(masses.share_of_weight(0.5, 2.0 * weight), mass);
        }
        // A zero weight has zero mass.
        let masses = Masses::of(0.0);
        assert_eq!((masses.mass(0.0), masses.share_of_weight(0.5, 0.0)), (0, 1));
        assert_eq!(Masses::share_of_mass(0.25, 7), 2);
    }
}
