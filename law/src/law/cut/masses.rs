//! Weights in whole numbers, for cuts that ask how much the most likely tokens weigh together.
//!
//! A sum of floating-point numbers depends on the order of its terms, and the order from the most likely
//! token down is that of a sort, which a device with thousands of threads cannot afford. Whole numbers have
//! no order: whoever adds the masses of the same tokens, in any order, has the same sum.
//!
//! The most likely token has a mass of 2⁴⁴ to 2⁴⁵, so that the weight of each token is rounded by 2⁻⁴⁵ of the
//! best one's at most: what this decides, the last digits of a sum over as many tokens decided before. The
//! unit is a power of two, by which nothing is rounded.

/// The bits of the most likely token's mass, less one.
const BITS: u64 = 44;
/// What a share of a law is off at most, summed in masses: 2²⁰ tokens, each rounded by half of one mass.
pub(super) const ROUNDING: f64 = 1e-7;

/// How weights become masses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masses {
    unit: f64,
}

impl Masses {
    /// Those of a law whose most likely token has this weight.
    pub(super) fn of(best: f64) -> Self {
        let exponent = best.to_bits() >> 52;
        // As large as a number may be, where the best weight is next to nothing.
        let unit = (2 * 1023 + BITS - exponent).min(2046);
        Masses {
            unit: f64::from_bits(unit << 52),
        }
    }

    /// The mass of a token of this weight.
    pub(super) fn mass(self, weight: f64) -> u128 {
        whole(weight * self.unit)
    }

    /// The mass of a share of a law that weighs this much; at least 1.
    pub(super) fn share_of_weight(self, share: f64, weight: f64) -> u128 {
        whole(share * (weight * self.unit)).max(1)
    }

    /// The same of a law of this mass.
    pub(super) fn share_of_mass(share: f64, mass: u128) -> u128 {
        whole(share * mass as f64).max(1)
    }
}

/// The nearest whole number.
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
        // Nothing weighs nothing.
        let masses = Masses::of(0.0);
        assert_eq!((masses.mass(0.0), masses.share_of_weight(0.5, 0.0)), (0, 1));
        assert_eq!(Masses::share_of_mass(0.25, 7), 2);
    }
}
