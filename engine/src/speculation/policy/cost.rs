//! The cost of a pass by its number of tokens: a measured table.
//!
//! A line is not enough. On two cores one token takes 1.2 ms, two take 4.1 ms and eight 4.2 ms, because a
//! single row is multiplied by other code than several; on a GPU up to a hundred tokens cost as much as one.
//! So costs are kept separately for each number of tokens up to four, and for two ranges per octave above,
//! and are interpolated between the known ranges.
//!
//! The speed of a shared machine varies. That affects all costs alike, so it is one factor, which adapts
//! within some passes; the values of the table at factor 1 adapt within some hundreds, and persist while a
//! range is not seen.
//!
//! The first passes of a process are slow, and any pass may be held up. So a range that was seen only a few
//! times may have a wrong cost, and if that is too high, the range would never be tried again. Therefore,
//! until it was seen often enough, its cost is taken from the ranges that were seen often, if that is lower:
//! a range that is taken to be cheap is tried, and then its cost is known.
//!
//! **Prompts.** A pass that also reads prompts takes longer by the time for these, which no draft should pay
//! for. A range keeps the seconds of its passes and their prompt tokens, and its cost is the seconds without
//! the cost of the prompts according to [`PromptCost`]. That is estimated from passes of one range with
//! prompts of different lengths. A table holds either passes with prompts or passes without: where prompts
//! fill a pass up to what a GPU computes at once, each draft has a cost, although it is free without prompts.

use crate::speculation::policy::prompts::PromptCost;

/// The fraction of a pass that is assumed not to depend on its tokens, as long as only one number of tokens
/// was seen.
const FIXED: f64 = 0.5;
/// The learning rate of the factor.
const QUICK: f64 = 1.0 / 16.0;
/// The learning rate of a range that was seen often.
const SLOW_RATE: f64 = 1.0 / 256.0;
/// The number of passes after which a range is known.
const OFTEN: u32 = 8;
/// A pass that took this many times longer or shorter than expected was held up by something else.
const STRANGE: f64 = 2.0;
/// How much passes must differ in their tokens to show the cost of one, relative to the smaller number.
const TELLING: f64 = 0.1;
/// Two passes are compared if their prompt tokens differ by more than this many times the difference of their
/// other tokens.
const ALIKE_RATIO: usize = 8;
/// The fraction of a pass that its decoded tokens cost at least, whatever the estimate for prompts is.
const LEAST_SHARE: f64 = 1.0 / 256.0;

/// The tokens of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// The number of decoded tokens: one for each sequence that draws, and the drafts.
    pub(crate) decoded: usize,
    /// The number of prompt tokens that are read beside them.
    pub(crate) prompts: usize,
}

/// The passes of a range of token counts: averages, and the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    seen: u32,
    tokens: f64,
    prompts: f64,
    /// The seconds, including those of prompts.
    seconds: f64,
    /// The tokens of the last pass, and its seconds at factor 1.
    last: Option<(Tokens, f64)>,
}

/// A number of tokens and its cost without prompts, at factor 1.
#[derive(Clone, Copy, Debug)]
struct Point {
    tokens: f64,
    seconds: f64,
}

/// A table of costs by the number of tokens; see the module.
#[derive(Clone, Debug)]
pub(crate) struct PassCosts {
    ranges: Vec<Range>,
    prompts: PromptCost,
    factor: f64,
}

impl Default for PassCosts {
    fn default() -> Self {
        PassCosts {
            ranges: Vec::new(),
            prompts: PromptCost::default(),
            factor: 1.0,
        }
    }
}

/// Returns the range of a number of tokens: 1, 2, 3, 4, then two ranges per octave.
fn range(tokens: usize) -> usize {
    let tokens = tokens.max(1);
    let octave = tokens.ilog2() as usize;
    match tokens {
        0..=4 => tokens - 1,
        _ if tokens.is_power_of_two() => range(tokens - 1),
        _ => 2 * octave + usize::from(tokens > 3 << (octave - 1)),
    }
}

impl PassCosts {
    /// Learns from a pass, and returns the seconds that its tokens are taken to have cost without its
    /// prompts. They are fewer if something held the pass up.
    pub(crate) fn observe(&mut self, pass: Tokens, seconds: f64) -> f64 {
        let number = range(pass.decoded);
        if self.ranges.len() <= number {
            self.ranges.resize(number + 1, Range::default());
        }
        let mut seconds = seconds;
        let is_known = self.ranges[number].seen > 0 && (pass.prompts == 0 || self.prompts.is_known());
        if is_known && let Some(expected) = self.expected(pass).filter(|&expected| expected > 0.0) {
            let ratio = (seconds / expected).clamp(STRANGE.recip(), STRANGE);
            self.factor *= ratio.powf(QUICK);
            seconds = ratio * expected;
        }
        let at_one = seconds / self.factor;
        let range = &mut self.ranges[number];
        if let Some((last, lasted)) = range.last
            && last.prompts.abs_diff(pass.prompts) > ALIKE_RATIO * last.decoded.abs_diff(pass.decoded)
        {
            let more = pass.prompts as f64 - last.prompts as f64;
            self.prompts.compare(more, at_one - lasted);
        }
        range.last = Some((pass, at_one));
        range.seen = range.seen.saturating_add(1);
        let part = f64::from(range.seen).recip().max(SLOW_RATE);
        range.tokens += part * (pass.decoded as f64 - range.tokens);
        range.prompts += part * (pass.prompts as f64 - range.prompts);
        range.seconds += part * (at_one - range.seconds);
        self.decoded(pass, seconds)
    }

    /// Returns the seconds of a pass without those of its prompts.
    fn decoded(&self, pass: Tokens, seconds: f64) -> f64 {
        (seconds - self.of_prompts(pass.prompts)).max(LEAST_SHARE * seconds)
    }

    /// Returns the seconds that passes of these tokens took, interpolated between those that were seen;
    /// `None` before the first pass.
    pub(crate) fn expected(&self, pass: Tokens) -> Option<f64> {
        let decoded = self.factor * self.read(pass.decoded, 1)?;
        Some(decoded + self.of_prompts(pass.prompts))
    }

    /// Returns the seconds of `tokens` prompt tokens.
    fn of_prompts(&self, tokens: usize) -> f64 {
        self.factor * self.each_of_prompts() * tokens as f64
    }

    /// Returns the seconds of one prompt token, at factor 1.
    ///
    /// If prompts always had the same length, or filled the rest of a pass, this cannot be measured. Then the
    /// cost is that of a token of any kind, if passes had different numbers of tokens, and otherwise its
    /// share of half a pass; half a pass is the most that all prompts of a pass are taken to cost.
    fn each_of_prompts(&self) -> f64 {
        self.prompts.each().unwrap_or_else(|| {
            let mut seen = self.ranges.iter().filter(|range| range.seen > 0);
            let Some(first) = seen.next() else { return 0.0 };
            let last = seen.next_back().unwrap_or(first);
            let all = |range: &Range| range.tokens + range.prompts;
            let more = all(last) - all(first);
            let most = FIXED * first.seconds / first.prompts.max(1.0);
            match more > TELLING * all(first) {
                true => ((last.seconds - first.seconds) / more).clamp(0.0, most),
                false => FIXED * first.seconds / all(first),
            }
        })
    }

    /// Returns the seconds that a pass of `tokens` tokens is taken to cost for a choice, without its prompts;
    /// `None` before the first pass.
    pub(crate) fn of(&self, tokens: usize) -> Option<f64> {
        let all = self.read(tokens, 1)?;
        let seen = self
            .ranges
            .get(range(tokens))
            .map_or(0, |own| own.seen.min(OFTEN));
        let often = self.ranges.iter().filter(|range| range.seen >= OFTEN).count();
        let less = match (seen, self.read(tokens, OFTEN)) {
            // With a single range, values beyond it are only a guess.
            (1.., Some(less)) if often > 1 => less.min(all),
            _ => all,
        };
        let part = (2.0 * f64::from(seen) / f64::from(OFTEN) - 1.0).max(0.0);
        Some(self.factor * (part * all + (1.0 - part) * less))
    }

    /// Returns the seconds at factor 1 according to the ranges that were seen at least `often` times; `None`
    /// if there are none. Beyond the last of these, the cost follows the line through it and the range with a
    /// quarter of its tokens.
    fn read(&self, tokens: usize, often: u32) -> Option<f64> {
        let each = self.each_of_prompts();
        let point = |range: &Range| Point {
            tokens: range.tokens,
            seconds: (range.seconds - each * range.prompts).max(LEAST_SHARE * range.seconds),
        };
        let known = || self.ranges.iter().filter(|range| range.seen >= often).map(point);
        let (first, last) = (known().next()?, known().next_back()?);
        let tokens = tokens as f64;
        let above = known().find(|point| point.tokens >= tokens);
        let below = known().rev().find(|point| point.tokens <= tokens);
        let guessed = Point {
            tokens: 0.0,
            seconds: FIXED * first.seconds,
        };
        Some(match (below, above) {
            (Some(below), Some(above)) => between(below, above, tokens),
            (None, _) => between(guessed, first, tokens),
            (Some(_), None) => {
                let near = |point: &Point| 4.0 * point.tokens >= last.tokens && point.tokens < last.tokens;
                let before = known().rev().find(|point| point.tokens < last.tokens);
                let from = known().find(near).or(before).unwrap_or(guessed);
                between(from, last, tokens)
            }
        })
    }
}

/// Returns the seconds on the line through two points; beyond the second, more tokens never cost less.
fn between(first: Point, second: Point, tokens: f64) -> f64 {
    let distance = second.tokens - first.tokens;
    if distance <= 0.0 {
        return second.seconds;
    }
    let slope = (second.seconds - first.seconds) / distance;
    match tokens <= second.tokens {
        true => first.seconds + slope * (tokens - first.tokens),
        false => second.seconds + slope.max(0.0) * (tokens - second.tokens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tokens of a pass without prompts.
    fn plain(decoded: usize) -> Tokens {
        Tokens { decoded, prompts: 0 }
    }

    #[test]
    fn ranges_are_two_an_octave_from_four_on() {
        let ranges: Vec<usize> = (1..=17).map(range).collect();
        assert_eq!(ranges, [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8]);
        assert!((1..5000).all(|tokens| (0..=1).contains(&(range(tokens + 1) - range(tokens)))));
    }

    #[test]
    fn a_jump_and_a_plain_are_seen_as_they_are() {
        let cost = |tokens: usize| {
            if tokens == 1 {
                1.0
            } else {
                4.0 + 0.01 * tokens as f64
            }
        };
        let mut costs = PassCosts::default();
        assert_eq!(costs.of(3), None);
        for _ in 0..50 {
            for tokens in [1, 2, 3, 4, 6, 8, 12, 16] {
                costs.observe(plain(tokens), cost(tokens));
            }
        }
        for tokens in [1, 2, 4, 7, 10, 16, 40] {
            let found = costs.of(tokens).expect("it was seen");
            assert!((found - cost(tokens)).abs() < 0.3, "{tokens}: {found}");
        }
    }

    /// Guards against taking a pass that was held up as the cost of its kind, so that this kind is never
    /// tried again.
    #[test]
    fn a_few_slow_passes_do_not_make_a_range_dear() {
        let mut costs = PassCosts::default();
        (0..2).for_each(|_| _ = costs.observe(plain(1), 5.0));
        (0..100).for_each(|_| _ = costs.observe(plain(2), 1.0));
        (0..100).for_each(|_| _ = costs.observe(plain(4), 2.0));
        (0..3).for_each(|_| _ = costs.observe(plain(8), 9.0));
        let of = |tokens| costs.of(tokens).expect("there were passes");
        assert!(of(1) <= 1.0, "{}", of(1));
        assert!(of(8) < 5.0, "{}", of(8));
        assert!((of(2) - 1.0).abs() < 0.1 && (of(4) - 2.0).abs() < 0.2);
        // A range that is expensive is known to be so after some more passes.
        (0..30).for_each(|_| _ = costs.observe(plain(8), 9.0));
        let of = |tokens| costs.of(tokens).expect("there were passes");
        assert!(of(8) > 6.0, "{}", of(8));
    }

    /// Ranges that are not seen become slower together with those that are; and one pass that was held up has
    /// little effect.
    #[test]
    fn all_costs_follow_the_machine() {
        let mut costs = PassCosts::default();
        (0..100).for_each(|_| {
            costs.observe(plain(4), 1.0);
            costs.observe(plain(8), 2.0);
        });
        costs.observe(plain(4), 1000.0);
        assert!(costs.of(4).expect("it was seen") < 1.1);
        (0..100).for_each(|_| _ = costs.observe(plain(4), 1.5));
        let ratio = costs.of(8).expect("it was seen") / costs.of(4).expect("it was seen");
        assert!(
            (costs.of(4).expect("it was seen") - 1.5).abs() < 0.02,
            "{costs:?}"
        );
        assert!((1.7..2.1).contains(&ratio), "{ratio}");
    }

    /// Returns lengths of prompts that follow no pattern.
    fn lengths() -> impl Iterator<Item = usize> {
        std::iter::successors(Some(7_usize), |last| Some((last * 1_103 + 12_345) % 4_096)).map(|it| it / 8)
    }

    /// The time for prompts is not counted as a cost of the other tokens, however the two occur together and
    /// whatever the fixed cost of a pass is.
    #[test]
    fn costs_beside_prompts_are_those_without() {
        let line = |tokens: f64| 1e-3 + 5e-5 * tokens;
        for each in [0.0, 1e-5, 1e-4] {
            let mut costs = PassCosts::default();
            let numbers = [1, 2, 4, 8, 16, 64].into_iter().cycle();
            // Longer prompts come with more drafts, so a table that charges prompts to drafts would find
            // drafts expensive.
            let passes = numbers
                .zip(lengths())
                .filter(|(decoded, prompts)| decoded * 4 <= 64 + prompts);
            for (decoded, prompts) in passes.take(3000) {
                costs.observe(
                    Tokens { decoded, prompts },
                    line(decoded as f64) + each * prompts as f64,
                );
            }
            for tokens in [1, 3, 8, 40, 64] {
                let (found, cost) = (costs.of(tokens).expect("it was seen"), line(tokens as f64));
                assert!(
                    (found / cost - 1.0).abs() < 0.05,
                    "{each}, {tokens}: {found} and {cost}"
                );
            }
        }
    }

    /// If all prompts have the same length, their cost cannot be separated from the fixed cost of a pass, but
    /// the differences between numbers of tokens can still be measured.
    #[test]
    fn prompts_of_one_length_leave_differences() {
        let mut costs = PassCosts::default();
        for decoded in [1, 2, 4, 8, 16, 64].into_iter().cycle().take(3000) {
            costs.observe(
                Tokens {
                    decoded,
                    prompts: 100,
                },
                6e-3 + 5e-5 * decoded as f64,
            );
        }
        let of = |tokens| costs.of(tokens).expect("it was seen");
        for (fewer, more) in [(1, 4), (4, 16), (16, 64)] {
            let (found, cost) = (of(more) - of(fewer), 5e-5 * (more - fewer) as f64);
            assert!((found / cost - 1.0).abs() < 0.05, "{fewer} and {more}: {found}");
        }
        assert!((1e-3..6e-3).contains(&of(1)), "{}", of(1));
    }

    /// Guards against drafts that look free because they replace prompt tokens, so that a pass with them
    /// takes no longer.
    #[test]
    fn drafts_in_the_place_of_prompts_cost_something() {
        let mut costs = PassCosts::default();
        for decoded in [60, 64, 90, 128].into_iter().cycle().take(3000) {
            let prompts = 512 - decoded;
            costs.observe(Tokens { decoded, prompts }, 1e-3 + 512.0 * 5e-5);
        }
        let of = |tokens| costs.of(tokens).expect("it was seen");
        let more = (of(128) - of(64)) / 64.0;
        assert!((2e-5..6e-5).contains(&more), "{more} for each draft");
    }
}
