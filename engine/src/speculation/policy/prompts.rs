//! The time that a prompt token adds to a pass, estimated from passes that differ in their number of prompt
//! tokens.

use std::collections::VecDeque;

/// The number of comparisons that are kept.
const KEPT_COMPARISONS: usize = 128;
/// The number of comparisons after which the cost counts as known.
const ENOUGH_COMPARISONS: usize = 8;

/// The cost of a prompt token: the median of the extra time per prompt token, over pairs of passes with as
/// many other tokens. This is the line through the passes by Theil and Sen ([Sen
/// 1968](https://doi.org/10.1080/01621459.1968.10480934)), with consecutive passes as the pairs, weighted by
/// their difference in tokens.
///
/// A pass that was held up is in two pairs, once as the longer and once as the shorter, so half of all passes
/// may be held up without moving the median far. A least-squares regression would take a single one for
/// hundreds of tokens. O([`KEPT_COMPARISONS`] · log) for a pass with prompts.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptCost {
    /// Pairs of seconds per token, and number of tokens.
    slopes: VecDeque<(f64, f64)>,
    each: Option<f64>,
}

impl PromptCost {
    /// Learns from two passes that differ only in their prompts: by `tokens` tokens, at least one, and by
    /// `seconds` seconds.
    pub(crate) fn compare(&mut self, tokens: f64, seconds: f64) {
        if self.slopes.len() == KEPT_COMPARISONS {
            self.slopes.pop_front();
        }
        self.slopes.push_back((seconds / tokens, tokens.abs()));
        self.each = Some(self.median().max(0.0));
    }

    /// Returns the seconds of a token; `None` if all passes had the same number.
    pub(crate) fn each(&self) -> Option<f64> {
        self.each
    }

    /// Returns `true` if the cost is reliable.
    pub(crate) fn is_known(&self) -> bool {
        self.slopes.len() >= ENOUGH_COMPARISONS
    }

    /// Returns the weighted median of the slopes.
    fn median(&self) -> f64 {
        let mut sorted: Vec<(f64, f64)> = self.slopes.iter().copied().collect();
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
        let half = 0.5 * sorted.iter().map(|(_, weight)| weight).sum::<f64>();
        let mut below = 0.0;
        let median = sorted.iter().find(|(_, weight)| {
            below += weight;
            below >= half
        });
        median.map_or(0.0, |(slope, _)| *slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_passes_that_were_held_up_do_not_move_the_cost() {
        let mut cost = PromptCost::default();
        assert!(cost.each().is_none() && !cost.is_known());
        let pass = |number: u32| {
            let tokens = f64::from(number * 37 % 101);
            let held_up = if number.is_multiple_of(6) { 50.0 } else { 0.0 };
            (tokens, 1.0 + 0.01 * tokens + held_up)
        };
        for number in 0..1000 {
            let ((tokens, seconds), (other, others)) = (pass(number), pass(number + 1));
            cost.compare(other - tokens, others - seconds);
        }
        let each = cost.each().expect("lengths differ");
        assert!((each - 0.01).abs() < 1e-3, "{each}");
        assert!(cost.slopes.len() <= KEPT_COMPARISONS && cost.is_known());
    }

    #[test]
    fn a_prompt_never_makes_a_pass_shorter() {
        let mut cost = PromptCost::default();
        cost.compare(10.0, -1.0);
        assert_eq!(cost.each(), Some(0.0));
        cost.compare(-30.0, -3.0);
        assert_eq!(cost.each(), Some(0.1));
    }
}
