//! Candidates: the tokens of a row among which a cut chooses, and the bounds that a cut must declare.
//!
//! A row of 128,000 tokens is not sorted to find its best 40. Before its tokens are listed, each cut names a
//! weight that a block of 32 must have ([`Cut::least_block`]) and a logit that a token must have
//! ([`Cut::floor`]) for anything in it to be kept. Blocks and tokens below these bounds are never read.

use std::cmp::Ordering;
use std::fmt::Debug;

use super::super::distribution::{BLOCK, exp};
use super::masses::Masses;

/// The number of candidates sorted at first; four times more whenever they are not enough.
const FIRST_SORTED: usize = 64;

/// A logit and its token.
pub(in crate::law) type Candidate = (f32, u32);

/// Orders candidates from the most likely token down, equal logits by id.
pub(in crate::law) fn by_rank(one: &Candidate, other: &Candidate) -> Ordering {
    other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
}

/// A rule that keeps some of the tokens of a law, which is then renormalised.
pub(in crate::law) trait Cut: Debug + Send + Sync {
    /// Returns how much of the law the rule reads.
    fn reads(&self) -> Reads;

    /// Returns the weight that a block of 32 tokens must have to hold a token that is kept.
    ///
    /// The largest token of a block weighs no more than the block and no less than a 32nd of it.
    fn least_block(&self, _blocks: &Blocks<'_>) -> f64 {
        0.0
    }

    /// Returns a logit below which no token is kept.
    fn floor(&self, _peaks: &Peaks<'_>) -> f64 {
        f64::NEG_INFINITY
    }

    /// Drops the candidates that are not kept. At least one stays where there is one.
    fn keep(&self, candidates: &mut Candidates);
}

/// How much of a law a cut reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::law) enum Reads {
    /// The tokens that it keeps, which are the most likely ones.
    Top,
    /// The tokens that it keeps, and the weight of all tokens together.
    Sum,
    /// Every token.
    All,
}

/// The weights of the blocks of a law, known before any of its tokens is read.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Blocks<'a> {
    /// The weight of each block.
    pub(in crate::law) sums: &'a [f64],
    /// The weight of all blocks.
    pub(in crate::law) total: f64,
    /// The number of tokens.
    pub(in crate::law) len: usize,
}

impl Blocks<'_> {
    /// The weight of the heaviest block.
    pub(in crate::law) fn heaviest(&self) -> f64 {
        self.sums.iter().copied().fold(0.0, f64::max)
    }

    /// Returns a lower bound of the weight of the most likely token.
    pub(in crate::law) fn best(&self) -> f64 {
        self.heaviest() / BLOCK as f64
    }
}

/// Statistics of the tokens of a law, known before they are listed.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Peaks<'a> {
    /// The largest logit of each block that may hold a token that is kept.
    pub(in crate::law) logits: &'a [f32],
    /// The weight of all tokens.
    pub(in crate::law) total: f64,
    /// The number of tokens.
    pub(in crate::law) len: usize,
    /// The conversion of logits into weights.
    pub(in crate::law) scale: Scale,
}

impl Peaks<'_> {
    /// The largest logit.
    pub(in crate::law) fn best(&self) -> f64 {
        f64::from(self.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max))
    }

    /// Returns the logit of a token whose weight is this share of the weight of the most likely one.
    pub(in crate::law) fn below_best(&self, share: f64) -> f64 {
        self.best() + share.ln() / self.scale.factor
    }
}

/// The conversion of logits into weights.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Scale {
    /// The factor that turns differences of logits into differences of logarithms.
    pub(in crate::law) factor: f64,
    /// The logit that weighs 1.
    pub(in crate::law) peak: f32,
}

impl Scale {
    /// Returns the logarithm of a token's weight.
    pub(in crate::law) fn log_weight(self, candidate: &Candidate) -> f64 {
        (f64::from(candidate.0) - f64::from(self.peak)) * self.factor
    }

    /// Returns a token's weight.
    pub(in crate::law) fn weight(self, candidate: &Candidate) -> f64 {
        exp(self.log_weight(candidate))
    }

    /// Returns the logit that has this weight.
    pub(in crate::law) fn logit(self, weight: f64) -> f64 {
        f64::from(self.peak) + weight.ln() / self.factor
    }
}

/// The tokens of a law that may be kept.
#[derive(Clone, Debug)]
pub(in crate::law) struct Candidates {
    listed: Vec<Candidate>,
    scale: Scale,
    /// The weight of the law; unknown if a cut has dropped candidates since it was computed.
    sum: Option<f64>,
}

impl Candidates {
    /// Creates the candidates of a law of this weight.
    pub(in crate::law) fn new(listed: Vec<Candidate>, scale: Scale, sum: f64) -> Self {
        Candidates {
            listed,
            scale,
            sum: Some(sum),
        }
    }

    /// Returns the conversion of logits into weights.
    pub(in crate::law) fn scale(&self) -> Scale {
        self.scale
    }

    /// Returns the candidates in no particular order.
    pub(in crate::law) fn listed(&self) -> &[Candidate] {
        &self.listed
    }

    /// Returns the weight of the law.
    pub(in crate::law) fn sum(&mut self) -> f64 {
        let (listed, scale) = (&self.listed, self.scale);
        let all = || listed.iter().map(|candidate| scale.weight(candidate)).sum();
        *self.sum.get_or_insert_with(all)
    }

    /// Returns the mean of the log weights, each token weighted by its probability. The entropy of the law is
    /// the logarithm of its sum minus this mean.
    pub(in crate::law) fn mean_log_weight(&mut self) -> f64 {
        let sum = self.sum();
        let of = |candidate| self.scale.log_weight(candidate) * self.scale.weight(candidate);
        self.listed.iter().map(of).sum::<f64>() / sum
    }

    /// Returns the most likely candidate.
    pub(in crate::law) fn best(&self) -> Option<Candidate> {
        self.listed.iter().copied().min_by(by_rank)
    }

    /// Keeps the fewest of the most likely candidates whose masses together are at least this share of the
    /// mass of the law.
    pub(in crate::law) fn keep_share(&mut self, share: f64) {
        let Some(best) = self.best() else {
            return;
        };
        let scale = self.scale;
        let masses = Masses::of(scale.weight(&best));
        let bound = match self.sum {
            Some(sum) => masses.share_of_weight(share, sum),
            None => {
                let weights = self.listed.iter().map(|candidate| scale.weight(candidate));
                let all = weights.map(|weight| masses.mass(weight));
                Masses::share_of_mass(share, all.sum())
            }
        };
        let mut reached = 0;
        self.keep_run(by_rank, |candidate| {
            let before = reached;
            reached += masses.mass(scale.weight(candidate));
            before < bound
        });
    }

    /// Keeps the `count` most likely candidates.
    pub(in crate::law) fn keep_top(&mut self, count: usize) {
        if (1..self.listed.len()).contains(&count) {
            self.listed.select_nth_unstable_by(count - 1, by_rank);
        }
        self.listed.truncate(count);
        self.sum = None;
    }

    /// Keeps the candidates for which `is_kept` holds.
    pub(in crate::law) fn keep_if(&mut self, is_kept: impl Fn(&Candidate) -> bool) {
        self.listed.retain(is_kept);
        self.sum = None;
    }

    /// Keeps the candidates that weigh at least `least`, and the most likely one in any case.
    pub(in crate::law) fn keep_from(&mut self, least: f64) {
        let (best, scale) = (self.best(), self.scale);
        self.keep_if(|candidate| scale.weight(candidate) >= least);
        if self.listed.is_empty() {
            self.listed.extend(best);
        }
    }

    /// Keeps the longest run, in this order, of candidates for which `goes_on` holds. Only the run itself is
    /// sorted.
    pub(in crate::law) fn keep_run(
        &mut self,
        order: impl Fn(&Candidate, &Candidate) -> Ordering,
        mut goes_on: impl FnMut(&Candidate) -> bool,
    ) {
        self.sum = None;
        let (mut done, mut size) = (0, FIRST_SORTED);
        while done < self.listed.len() {
            let sorted = self.sort(done, size, &order);
            let rest = &self.listed[done..sorted];
            if let Some(end) = rest.iter().position(|candidate| !goes_on(candidate)) {
                self.listed.truncate(done + end);
                return;
            }
            done = sorted;
            size *= 4;
        }
    }

    /// Moves the `count` most likely candidates, or as many as there are, to the front, in order.
    pub(in crate::law) fn best_first(&mut self, count: usize) -> &[Candidate] {
        let sorted = self.sort(0, count, &by_rank);
        &self.listed[..sorted]
    }

    /// Sorts the first `size` candidates from `done` on, and returns where they end.
    fn sort(
        &mut self,
        done: usize,
        size: usize,
        order: &impl Fn(&Candidate, &Candidate) -> Ordering,
    ) -> usize {
        let rest = &mut self.listed[done..];
        let size = size.min(rest.len());
        if (1..rest.len()).contains(&size) {
            rest.select_nth_unstable_by(size - 1, order);
        }
        rest[..size].sort_unstable_by(order);
        done + size
    }

    /// Returns the tokens, by id.
    pub(in crate::law) fn into_tokens(self) -> Vec<u32> {
        let mut tokens: Vec<u32> = self.listed.into_iter().map(|(_, token)| token).collect();
        tokens.sort_unstable();
        tokens
    }
}
