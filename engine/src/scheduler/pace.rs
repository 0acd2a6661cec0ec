//! The number of tokens that a pass can take without delaying other requests.

use crate::config::EngineConfig;
use std::time::Duration;

/// The smallest bound on the tokens of a pass.
const LEAST_TOKENS: usize = 16;
/// How much the token counts of passes must differ, relative to their number, to be informative.
const TELLING: f64 = 1e-6;
/// The weight that the earlier passes keep after one more pass.
const KEPT_SHARE: f64 = 0.95;
/// The growth of the estimate of the shortest pass with each pass that was longer: it doubles after some
/// thousands. A model does not become slower, but the machine that it shares may.
const FORGOTTEN: f64 = 1.0002;

/// The time of a pass as a line over its tokens, fitted to the latest passes: the fixed cost of a pass, and
/// the cost of each token.
///
/// The fixed cost is at most the time of the shortest pass. Passes that are all of about the same length say
/// nothing about the slope: a line fitted to them may attribute most of their time to the fixed cost, which
/// would allow passes of that length for ever.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    shortest: f64,
    weight: f64,
    tokens: f64,
    seconds: f64,
    squares: f64,
    products: f64,
}

impl Pace {
    /// Updates the fit with a pass.
    pub(crate) fn observe(&mut self, tokens: usize, took: Duration) {
        let (tokens, seconds) = (tokens as f64, took.as_secs_f64());
        self.shortest = match self.weight > 0.0 {
            true => seconds.min(self.shortest * FORGOTTEN),
            false => seconds,
        };
        for (sum, more) in [
            (&mut self.weight, 1.0),
            (&mut self.tokens, tokens),
            (&mut self.seconds, seconds),
            (&mut self.squares, tokens * tokens),
            (&mut self.products, tokens * seconds),
        ] {
            *sum = KEPT_SHARE * *sum + more;
        }
    }

    /// Returns the number of tokens for a pass that several owners wait for: as many as add the configured
    /// time, or as much as the fixed cost if that is more. A model that computes many tokens as fast as one
    /// has no bound.
    pub(crate) fn tokens(self, config: &EngineConfig) -> usize {
        let most = config.max_step_tokens;
        let Some((fixed, each)) = self.line() else {
            return most;
        };
        let allowed = fixed.max(config.shared_pass.as_secs_f64());
        ((allowed / each) as usize).max(LEAST_TOKENS).min(most)
    }

    /// Returns the expected seconds of a pass of `tokens` tokens, if passes are known to take longer the more
    /// they feed.
    pub(crate) fn seconds(self, tokens: usize) -> Option<f64> {
        self.line().map(|(fixed, each)| fixed + each * tokens as f64)
    }

    /// Returns the fixed seconds of a pass, and the seconds for each token.
    fn line(self) -> Option<(f64, f64)> {
        let spread = self.weight * self.squares - self.tokens * self.tokens;
        let slope = (self.weight * self.products - self.tokens * self.seconds) / spread;
        let fixed = (self.seconds - slope * self.tokens) / self.weight;
        let fixed = fixed.clamp(0.0, self.shortest);
        let each = (self.seconds - fixed * self.weight) / self.tokens;
        let is_known = each > 0.0 && spread > TELLING * self.weight * self.squares;
        is_known.then_some((fixed, each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bound after passes that take `fixed` microseconds, and `each` more for each token.
    fn bound(fixed: u64, each: u64) -> usize {
        let config = EngineConfig {
            shared_pass: Duration::from_millis(10),
            max_step_tokens: 512,
            ..EngineConfig::default()
        };
        let mut pace = Pace::default();
        for tokens in (1..100).cycle().take(500) {
            pace.observe(tokens, Duration::from_micros(fixed + each * tokens as u64));
        }
        pace.tokens(&config)
    }

    #[test]
    fn slow_models_get_small_passes_and_quick_ones_whole() {
        assert_eq!(bound(1_000, 0), 512);
        assert_eq!(bound(1_000, 1), 512);
        assert!((98..=100).contains(&bound(1_000, 100)), "{}", bound(1_000, 100));
        assert_eq!(bound(1_000, 100_000), LEAST_TOKENS);
        // A pass with a high fixed cost may take twice that cost.
        assert!(
            (195..=200).contains(&bound(20_000, 100)),
            "{}",
            bound(20_000, 100)
        );
    }

    /// The bound itself keeps passes at one length, and the small differences between them may have any
    /// reason.
    #[test]
    fn long_passes_do_not_justify_themselves() {
        let config = EngineConfig::default();
        let mut pace = Pace::default();
        (0..20).for_each(|_| pace.observe(8, Duration::from_micros(5_000)));
        for number in 0..200 {
            pace.observe(
                170 + number % 20,
                Duration::from_micros(30_000 - 50 * number as u64 % 20),
            );
        }
        let allowed = pace.tokens(&config);
        assert!(allowed <= 60, "{allowed}");
    }

    #[test]
    fn what_nothing_is_known_of_is_not_bounded() {
        let config = EngineConfig::default();
        let mut pace = Pace::default();
        assert_eq!(pace.tokens(&config), config.max_step_tokens);
        (0..9).for_each(|_| pace.observe(8, Duration::from_secs(1)));
        assert_eq!(pace.tokens(&config), config.max_step_tokens);
    }
}
