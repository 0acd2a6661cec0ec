//! The statistics of right and wrong answers. All of them are the same in every run.

/// The two-sided 95 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The number of resamples of a bootstrap.
const RESAMPLES: usize = 2_000;

/// The seed of every bootstrap.
const SEED: u64 = 0x5eed;

/// Returns the 95 % interval of a share after Wilson (1927); everything if there was no trial.
pub(super) fn wilson(right: usize, all: usize) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let n = all as f64;
    let share = right as f64 / n;
    let centre = share + Z * Z / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    // Rounding must not move an end that is exact.
    let low = if right == 0 {
        0.0
    } else {
        (centre - spread) / scale
    };
    let high = if right == all {
        1.0
    } else {
        (centre + spread) / scale
    };
    (low, high)
}

/// Returns the two-sided p-value of McNemar's exact test: how often a fair coin would split the pairs in
/// which exactly one of two arms is right at least as unevenly.
pub(super) fn mcnemar(only_first: usize, only_second: usize) -> f64 {
    let all = only_first + only_second;
    let fewer = only_first.min(only_second);
    // The logarithm of all! / (k! (all - k)!) / 2^all, which itself has no binary number for many pairs.
    let mut log = -(all as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for k in 0..=fewer {
        tail += log.exp();
        log += ((all - k) as f64).ln() - ((k + 1) as f64).ln();
    }
    (2.0 * tail).min(1.0)
}

/// Returns the 95 % interval of the difference of two shares over the same trials after Bonett and Price
/// (2012): of the share of the second less that of the first, from the trials in which only one of them is
/// right. It also says something about few trials, which a bootstrap does not.
pub(super) fn bonett_price(only_first: usize, only_second: usize, all: usize) -> (f64, f64) {
    let n = all as f64 + 2.0;
    let first = (only_first as f64 + 1.0) / n;
    let second = (only_second as f64 + 1.0) / n;
    let difference = second - first;
    let spread = Z * ((first + second - difference * difference) / n).sqrt();
    ((difference - spread).max(-1.0), (difference + spread).min(1.0))
}

/// Returns the 95 % interval of the mean of paired differences, by the percentiles of a bootstrap over the
/// pairs; nothing if there is no pair.
pub(super) fn bootstrap(differences: &[f64]) -> Option<(f64, f64)> {
    let n = differences.len();
    if n == 0 {
        return None;
    }
    let mut random = Random::new(SEED);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..n).map(|_| differences[random.below(n)]).sum::<f64>() / n as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let outside = RESAMPLES / 40;
    Some((means[outside], means[RESAMPLES - 1 - outside]))
}

/// A generator of random numbers, SplitMix64 (Steele, Lea and Flood 2014): the same numbers for the same
/// seed on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `n`, which is not 0. Its bias is below `n / 2^64`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 5e-5, "{found}, wanted {wanted}");
    }

    // Values of the formula with z = 1.95996, by hand: 8 of 10, 0 of 10, 50 of 100.
    #[test]
    fn wilson_is_the_formula() {
        let (low, high) = wilson(8, 10);
        near(low, 0.4902);
        near(high, 0.9433);
        let (low, high) = wilson(0, 10);
        assert_eq!(low, 0.0);
        near(high, 0.2775);
        let (low, high) = wilson(50, 100);
        near(low, 0.4038);
        near(high, 0.5962);
        assert_eq!((wilson(3, 3).1, wilson(0, 0)), (1.0, (0.0, 1.0)));
    }

    // By counting: with 6 pairs of which 1 is on the other side, (1 + 6) / 64 on each side.
    #[test]
    fn mcnemar_counts_the_tails() {
        near(mcnemar(5, 1), 14.0 / 64.0);
        near(mcnemar(0, 5), 2.0 / 32.0);
        near(mcnemar(10, 2), 2.0 * (1.0 + 12.0 + 66.0) / 4096.0);
        assert_eq!((mcnemar(0, 0), mcnemar(3, 3)), (1.0, 1.0));
        let many = mcnemar(5_000, 5_200);
        assert!(many > 0.04 && many < 0.06, "{many}");
        assert!(mcnemar(0, 20_000) < 1e-300);
    }

    // By hand: (11/102, 21/102) and (2/3, 1/3).
    #[test]
    fn bonett_price_is_the_formula() {
        let (low, high) = bonett_price(10, 20, 100);
        near(low, 0.098_039 - 1.959_964 * 0.054_603);
        near(high, 0.098_039 + 1.959_964 * 0.054_603);
        let (low, high) = bonett_price(1, 0, 1);
        near(low, -1.0);
        near(high, -1.0 / 3.0 + 1.959_964 * 0.544_331);
        assert_eq!(bonett_price(4, 4, 8).0, -bonett_price(4, 4, 8).1);
    }

    #[test]
    fn a_bootstrap_is_the_same_every_time() {
        let differences: Vec<f64> = (0..100).map(|it| if it < 30 { 1.0 } else { 0.0 }).collect();
        let (low, high) = bootstrap(&differences).expect("pairs");
        assert_eq!(bootstrap(&differences), Some((low, high)));
        // 0.3 ± 1.96 · sqrt(0.21 / 100), up to the noise of the resamples.
        assert!(
            (low - 0.21).abs() < 0.02 && (high - 0.39).abs() < 0.02,
            "{low} {high}"
        );
        assert_eq!(bootstrap(&[0.5; 7]), Some((0.5, 0.5)));
        assert_eq!(bootstrap(&[]), None);
    }

    // The first numbers of the reference implementation for the seed 1234567.
    #[test]
    fn random_numbers_are_those_of_the_reference() {
        let mut random = Random::new(1_234_567);
        let numbers = [random.next(), random.next(), random.next()];
        let reference = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(numbers, reference);
        let mut seen = [0; 3];
        (0..3_000).for_each(|_| seen[random.below(3)] += 1);
        assert!(seen.iter().all(|it| (900..1_100).contains(it)), "{seen:?}");
    }
}
