//! What a draft that is drawn from a store's row costs and brings, as far as it is known before the draw.
//!
//! A token that was drawn must be judged, so whether it is fed is decided before. A draft goes on while the
//! next token pays, or that token with those after it would, if each of them were as likely as it.

use super::{Base, MARGIN, MOST_ASKED, Policy};

/// The number of drafts whose costs are told.
const MOST: usize = 32;
/// The least probability of a path that is drawn where costs do not matter.
const LEAST_PROBABILITY: f64 = 0.1;
/// The number of passes after which a token is drawn whether or not it pays.
const TRIED_EVERY: u64 = 64;

/// What decides whether another token is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Stakes {
    /// All that are likely enough are.
    #[default]
    Free,
    /// One token is, to measure it.
    Trial,
    /// Those that bring the most tokens per second are.
    Known {
        /// The number of tokens that the pass draws without drafts.
        drawing: f64,
        /// The expected seconds of a pass with no draft, one, and so on.
        seconds: Vec<f64>,
    },
}

/// The drafts before a token that may be drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    /// Those of the sequence that are fed in any case.
    pub(crate) fed: usize,
    /// Those of them that were drawn.
    pub(crate) drawn: usize,
    /// The number of them that are expected to be confirmed.
    pub(crate) tokens: f64,
    /// The probability that the last one is.
    pub(crate) chance: f64,
}

impl Stakes {
    /// Returns `true` if it pays to draw and feed a token that is confirmed with the probability `chance` if
    /// those before it are.
    pub(crate) fn pays(&self, before: Before, chance: f64) -> bool {
        match self {
            Stakes::Free => before.chance * chance >= LEAST_PROBABILITY,
            Stakes::Trial => before.drawn == 0,
            Stakes::Known { drawing, seconds } => {
                let Some(rest) = seconds.get(before.fed..) else {
                    return false;
                };
                let Some((without, with)) = rest.split_first() else {
                    return false;
                };
                let tokens = drawing + before.tokens;
                let margin = if before.drawn == 0 { MARGIN } else { 1.0 };
                let (mut gain, mut likely) = (0.0, before.chance);
                with.iter().any(|seconds| {
                    likely *= chance;
                    gain += likely;
                    (tokens + gain) / seconds > margin * tokens / without
                })
            }
        }
    }
}

/// What is known, before a token is drawn, of how likely drafts are to be confirmed, and of what they cost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Odds {
    pub(crate) stakes: Stakes,
    /// The shares of drawn drafts of all sequences that were confirmed, by their kinds.
    pub(crate) drawn: Vec<f64>,
    /// Those of copies that begin, go on, and run.
    pub(crate) copied: Vec<f64>,
}

impl Policy {
    /// Returns the odds of tokens that are drawn from stores, in a pass like the last one.
    pub(crate) fn odds(&self) -> Odds {
        let (drawn, copied) = self.records.of_all();
        Odds {
            stakes: self.stakes(),
            drawn,
            copied,
        }
    }

    fn stakes(&self) -> Stakes {
        if !self.is_measured() {
            return Stakes::Free;
        }
        let base = Base {
            tokens: self.last.drawing,
            ..self.last
        };
        let seconds = (0..=MOST.min(MOST_ASKED)).map(|drafts| self.cost(base, drafts));
        match seconds.collect::<Option<Vec<f64>>>() {
            Some(seconds) if seconds[0] > 0.0 && !self.passes.is_multiple_of(TRIED_EVERY) => Stakes::Known {
                drawing: base.drawing as f64,
                seconds,
            },
            _ => Stakes::Trial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Before = Before {
        fed: 0,
        drawn: 0,
        tokens: 0.0,
        chance: 1.0,
    };

    /// The second token of a pass costs half as much as the first, and each further one a tenth: one draft
    /// never pays unless it is likely, but several may.
    #[test]
    fn a_token_pays_by_itself_or_with_those_after_it() {
        let seconds = std::iter::once(1.0).chain((0..MOST).map(|more| 1.5 + 0.1 * more as f64));
        let known = Stakes::Known {
            drawing: 1.0,
            seconds: seconds.collect(),
        };
        assert!(known.pays(FIRST, 0.6), "1.6 tokens in 1.5");
        assert!(known.pays(FIRST, 0.52), "1.93 tokens in 1.8");
        assert!(!known.pays(FIRST, 0.4));
        let after = Before {
            fed: 1,
            drawn: 1,
            tokens: 0.52,
            chance: 0.52,
        };
        assert!(known.pays(after, 0.4), "0.21 tokens for a tenth");
        assert!(!known.pays(after, 0.05));
        let full = Before { fed: MOST, ..after };
        assert!(!known.pays(full, 1.0), "no cost is known");
    }

    #[test]
    fn without_costs_a_path_is_likely_enough_or_one_token_long() {
        let after = Before {
            fed: 1,
            drawn: 1,
            tokens: 0.3,
            chance: 0.3,
        };
        assert!(Stakes::Free.pays(after, 0.4) && !Stakes::Free.pays(after, 0.3));
        assert!(Stakes::Trial.pays(FIRST, 0.0) && !Stakes::Trial.pays(after, 1.0));
    }
}
