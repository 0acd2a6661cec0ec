//! What a pass costs by its number of tokens: a table, measured.
//!
//! A line does not do. On two cores one token takes 1.2 ms, two take 4.1 ms and eight 4.2 ms, because a single row is
//! multiplied by other code than several; on a card up to a hundred tokens cost what one does. So costs are kept for numbers
//! of tokens one by one up to four and for two ranges an octave above, and are read between the ranges that are known.
//!
//! A machine that is shared is faster now and slower then. That concerns all costs alike, so it is one factor, which follows
//! within some passes; what the table says at factor 1 follows within some hundreds, and survives while nothing is seen of it.
//!
//! The first passes of a process are slow, and any pass may be held up. A range that was seen a few times only may be all wrong; if it is
//! too dear, nobody tries it again. So until it was seen some times it is taken to cost less, by what the ranges say that were seen often:
//! what is taken to be cheap is tried, and then it is known.

/// The part of a pass that is taken not to depend on its tokens, as long as only one number of tokens was seen.
const FIXED: f64 = 0.5;
/// How fast the factor follows.
const QUICK: f64 = 1.0 / 16.0;
/// How fast a range follows, once it has been seen often.
const SLOW: f64 = 1.0 / 256.0;
/// Passes after which a range is known.
const OFTEN: u32 = 8;
/// A pass that took longer than so many times what was expected, or less by as much, was held up by something else.
const STRANGE: f64 = 2.0;

/// The passes of a range of token numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    seen: u32,
    tokens: f64,
    seconds: f64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct PassCosts {
    ranges: Vec<Range>,
    factor: f64,
}

impl Default for PassCosts {
    fn default() -> Self {
        PassCosts {
            ranges: Vec::new(),
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
    /// Learns from a pass; the seconds that it is taken to have cost, which are fewer where something held it up.
    pub(crate) fn observe(&mut self, tokens: usize, seconds: f64) -> f64 {
        let number = range(tokens);
        if self.ranges.len() <= number {
            self.ranges.resize(number + 1, Range::default());
        }
        let mut seconds = seconds;
        if self.ranges[number].seen > 0
            && let Some(expected) = self.expected(tokens).filter(|&expected| expected > 0.0)
        {
            let ratio = (seconds / expected).clamp(STRANGE.recip(), STRANGE);
            self.factor *= ratio.powf(QUICK);
            seconds = ratio * expected;
        }
        let range = &mut self.ranges[number];
        range.seen = range.seen.saturating_add(1);
        let part = f64::from(range.seen).recip().max(SLOW);
        range.tokens += part * (tokens as f64 - range.tokens);
        range.seconds += part * (seconds / self.factor - range.seconds);
        seconds
    }

    /// The seconds that passes of so many tokens took, as far as any were seen; `None` before the first pass.
    pub(crate) fn expected(&self, tokens: usize) -> Option<f64> {
        Some(self.factor * self.read(tokens, 1)?)
    }

    /// The seconds that a pass of so many tokens is taken to cost where it is chosen; `None` before the first pass.
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

    /// What the ranges say that were seen so often, at factor 1; `None` where there is none. Numbers beyond theirs cost what the line
    /// through the last of these and those of a quarter of its tokens says.
    fn read(&self, tokens: usize, often: u32) -> Option<f64> {
        let known = || self.ranges.iter().filter(|range| range.seen >= often);
        let (first, last) = (known().next()?, known().next_back()?);
        let tokens = tokens as f64;
        let above = known().find(|range| range.tokens >= tokens);
        let below = known().rev().find(|range| range.tokens <= tokens);
        let guessed = Range {
            tokens: 0.0,
            seconds: FIXED * first.seconds,
            ..*first
        };
        Some(match (below, above) {
            (Some(below), Some(above)) => between(below, above, tokens),
            (None, _) => between(&guessed, first, tokens),
            (Some(_), None) => {
                let near = |range: &&Range| 4.0 * range.tokens >= last.tokens && range.tokens < last.tokens;
                let before = known().rev().find(|range| range.tokens < last.tokens);
                let from = known().find(near).or(before).unwrap_or(&guessed);
                between(from, last, tokens)
            }
        })
    }
}

/// The seconds on the line through two ranges; more tokens do not cost less beyond the second.
fn between(first: &Range, second: &Range, tokens: f64) -> f64 {
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
                costs.observe(tokens, cost(tokens));
            }
        }
        for tokens in [1, 2, 4, 7, 10, 16, 40] {
            let found = costs.of(tokens).expect("it was seen");
            assert!((found - cost(tokens)).abs() < 0.3, "{tokens}: {found}");
        }
    }

    /// Guards against a pass that was held up and is taken for what passes of its kind cost, so that they are never tried again.
    #[test]
    fn a_few_slow_passes_do_not_make_a_range_dear() {
        let mut costs = PassCosts::default();
        (0..2).for_each(|_| _ = costs.observe(1, 5.0));
        (0..100).for_each(|_| _ = costs.observe(2, 1.0));
        (0..100).for_each(|_| _ = costs.observe(4, 2.0));
        (0..3).for_each(|_| _ = costs.observe(8, 9.0));
        let of = |tokens| costs.of(tokens).expect("there were passes");
        assert!(of(1) <= 1.0, "{}", of(1));
        assert!(of(8) < 5.0, "{}", of(8));
        assert!((of(2) - 1.0).abs() < 0.1 && (of(4) - 2.0).abs() < 0.2);
        // What is dear indeed is known to be after some more.
        (0..30).for_each(|_| _ = costs.observe(8, 9.0));
        let of = |tokens| costs.of(tokens).expect("there were passes");
        assert!(of(8) > 6.0, "{}", of(8));
    }

    /// What is not seen becomes slower with what is; and one pass that was held up says little.
    #[test]
    fn all_costs_follow_the_machine() {
        let mut costs = PassCosts::default();
        (0..100).for_each(|_| {
            costs.observe(4, 1.0);
            costs.observe(8, 2.0);
        });
        costs.observe(4, 1000.0);
        assert!(costs.of(4).expect("it was seen") < 1.1);
        (0..100).for_each(|_| _ = costs.observe(4, 1.5));
        let ratio = costs.of(8).expect("it was seen") / costs.of(4).expect("it was seen");
        assert!(
            (costs.of(4).expect("it was seen") - 1.5).abs() < 0.02,
            "{costs:?}"
        );
        assert!((1.7..2.1).contains(&ratio), "{ratio}");
    }
}
