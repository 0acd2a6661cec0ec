//! What a token of a prompt adds to a pass, from passes that differ in how many they have.

use std::collections::VecDeque;

/// The comparisons that are kept.
const KEPT_COMPARISONS: usize = 128;
/// Comparisons after which the cost is taken to be known.
const ENOUGH_COMPARISONS: usize = 8;

/// The median of what passes took longer than others that had fewer tokens of prompts and as many beside, for
/// each token more: a line through the passes by Theil and Sen ([Sen
/// 1968](https://doi.org/10.1080/01621459.1968.10480934)), whose pairs are those that follow each other, and
/// count by how far they are apart.
///
/// A pass that was held up is in two of them, once as the longer and once as the shorter, so half of all
/// passes may be without moving the median far. A regression of least squares takes a single one for hundreds
/// of tokens. O([`KEPT_COMPARISONS`] · log) for a pass with prompts.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptCost {
    /// Seconds a token, and tokens.
    slopes: VecDeque<(f64, f64)>,
    each: Option<f64>,
}

impl PromptCost {
    /// Learns from two passes that differ in nothing else: by so many tokens of prompts, one more at least,
    /// and so many seconds.
    pub(crate) fn compare(&mut self, tokens: f64, seconds: f64) {
        if self.slopes.len() == KEPT_COMPARISONS {
            self.slopes.pop_front();
        }
        self.slopes.push_back((seconds / tokens, tokens.abs()));
        self.each = Some(self.median().max(0.0));
    }

    /// The seconds of a token; `None` where all passes had as many.
    pub(crate) fn each(&self) -> Option<f64> {
        self.each
    }

    /// Whether it can be relied on.
    pub(crate) fn is_known(&self) -> bool {
        self.slopes.len() >= ENOUGH_COMPARISONS
    }

    /// The slope below which lies half of the weight.
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
