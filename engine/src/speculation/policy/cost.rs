//! What a pass costs by its number of tokens: a table, measured.
//!
//! A line does not do. On two cores one token takes 1.2 ms, two take 4.1 ms and eight 4.2 ms, because a
//! single row is multiplied by other code than several; on a card up to a hundred tokens cost what one does.
//! So costs are kept for numbers of tokens one by one up to four and for two ranges an octave above, and are
//! read between the ranges that are known.
//!
//! A machine that is shared is faster now and slower then. That concerns all costs alike, so it is one
//! factor, which follows within some passes; what the table says at factor 1 follows within some hundreds,
//! and survives while nothing is seen of it.
//!
//! The first passes of a process are slow, and any pass may be held up. A range that was seen a few times
//! only may be all wrong; if it is too dear, nobody tries it again. So until it was seen some times it is
//! taken to cost less, by what the ranges say that were seen often: what is taken to be cheap is tried, and
//! then it is known.
//!
//! **Prompts.** A pass that reads prompts beside takes longer by what they take, which no draft is to pay
//! for. A range keeps the seconds of its passes and their tokens of prompts, and what is read from it is the
//! seconds without what [`PromptCost`] says that those cost. That is found from passes of one range with
//! prompts of different lengths. A table is either of passes with prompts or of passes without: where prompts
//! fill a pass up to what a card computes at once, each draft costs something that costs nothing alone.

use crate::speculation::policy::prompts::PromptCost;

/// The part of a pass that is taken not to depend on its tokens, as long as only one number of tokens was
/// seen.
const FIXED: f64 = 0.5;
/// How fast the factor follows.
const QUICK: f64 = 1.0 / 16.0;
/// How fast a range follows, once it has been seen often.
const SLOW_RATE: f64 = 1.0 / 256.0;
/// Passes after which a range is known.
const OFTEN: u32 = 8;
/// A pass that took longer than so many times what was expected, or less by as much, was held up by something
/// else.
const STRANGE: f64 = 2.0;
/// By how much passes must differ in their tokens to say what one costs.
const TELLING: f64 = 0.1;
/// Passes are compared that differ in their tokens of prompts by so many times what they differ in others.
const ALIKE_RATIO: usize = 8;
/// The part of a pass that is its tokens' in any case, whatever prompts are taken to cost.
const LEAST_SHARE: f64 = 1.0 / 256.0;

/// The tokens of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// One for each sequence that draws, and drafts.
    pub(crate) decoded: usize,
    /// Of prompts that are read beside them.
    pub(crate) prompts: usize,
}

/// The passes of a range of token numbers: averages, and the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    seen: u32,
    tokens: f64,
    prompts: f64,
    /// With those of the prompts.
    seconds: f64,
    /// Its tokens, and seconds at factor 1.
    last: Option<(Tokens, f64)>,
}

/// A number of tokens and what it costs without prompts, at factor 1.
#[derive(Clone, Copy, Debug)]
struct Point {
    tokens: f64,
    seconds: f64,
}

/// See the module.
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

/// Which range a number of tokens is in: 1, 2, 3, 4, then two an octave.
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
    /// Learns from a pass; the seconds that its tokens beside prompts are taken to have cost, which are fewer
    /// where something held it up.
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

    /// What is left of the seconds of a pass without those of its prompts.
    fn decoded(&self, pass: Tokens, seconds: f64) -> f64 {
        (seconds - self.of_prompts(pass.prompts)).max(LEAST_SHARE * seconds)
    }

    /// The seconds that passes of so many tokens took, as far as any were seen; `None` before the first pass.
    pub(crate) fn expected(&self, pass: Tokens) -> Option<f64> {
        let decoded = self.factor * self.read(pass.decoded, 1)?;
        Some(decoded + self.of_prompts(pass.prompts))
    }

    /// The seconds of so many tokens of prompts.
    fn of_prompts(&self, tokens: usize) -> f64 {
        self.factor * self.each_of_prompts() * tokens as f64
    }

    /// The seconds of one token of a prompt, at factor 1.
    ///
    /// Where prompts were always of one length, or filled up what others left of a pass, nobody can tell.
    /// Then it is taken to cost what a token of any kind adds, where passes have more and fewer, and else its
    /// part of half a pass; half of a pass is the most that prompts have.
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

    /// The seconds that a pass of so many tokens is taken to cost where it is chosen, without what prompts
    /// take beside them; `None` before the first pass.
    pub(crate) fn of(&self, tokens: usize) -> Option<f64> {
        let all = self.read(tokens, 1)?;
        let seen = self
            .ranges
            .get(range(tokens))
            .map_or(0, |own| own.seen.min(OFTEN));
        let often = self.ranges.iter().filter(|range| range.seen >= OFTEN).count();
        let less = match (seen, self.read(tokens, OFTEN)) {
            // Beyond a single range there is only a guess.
            (1.., Some(less)) if often > 1 => less.min(all),
            _ => all,
        };
        let part = (2.0 * f64::from(seen) / f64::from(OFTEN) - 1.0).max(0.0);
        Some(self.factor * (part * all + (1.0 - part) * less))
    }

    /// What the ranges say that were seen so often, at factor 1; `None` where there is none. Numbers beyond
    /// theirs cost what the line through the last of these and those of a quarter of its tokens says.
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

/// The seconds on the line through two points; more tokens do not cost less beyond the second.
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

    /// A pass without prompts.
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

    /// Guards against a pass that was held up and is taken for what passes of its kind cost, so that they are
    /// never tried again.
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
        // What is dear indeed is known to be after some more.
        (0..30).for_each(|_| _ = costs.observe(plain(8), 9.0));
        let of = |tokens| costs.of(tokens).expect("there were passes");
        assert!(of(8) > 6.0, "{}", of(8));
    }

    /// What is not seen becomes slower with what is; and one pass that was held up says little.
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

    /// Lengths of prompts that follow no pattern.
    fn lengths() -> impl Iterator<Item = usize> {
        std::iter::successors(Some(7_usize), |last| Some((last * 1_103 + 12_345) % 4_096)).map(|it| it / 8)
    }

    /// What prompts take is not a cost of the tokens beside them, however the two come together and whatever
    /// a pass costs in any case.
    #[test]
    fn costs_beside_prompts_are_those_without() {
        let line = |tokens: f64| 1e-3 + 5e-5 * tokens;
        for each in [0.0, 1e-5, 1e-4] {
            let mut costs = PassCosts::default();
            let numbers = [1, 2, 4, 8, 16, 64].into_iter().cycle();
            // More drafts where prompts are longer, so that who charges them to drafts finds drafts dear.
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

    /// Where prompts are all of one length, what they take beside the tokens cannot be told from what a pass
    /// costs in any case; what each number of tokens costs more than another is.
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

    /// Guards against drafts that look free because they take the place of tokens of prompts, so that a pass
    /// of them is no longer.
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
