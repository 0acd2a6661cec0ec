//! Candidates: the tokens of a row among which a cut chooses, and what a cut must say of itself.
//!
//! A row of 128,000 tokens is not sorted to find its best 40. Before its tokens are listed, each cut names a
//! weight that a block of 32 must have ([`Cut::least_block`]) and a logit that a token must have
//! ([`Cut::floor`]) for anything in it to be kept. What is below both is never looked at.

use std::cmp::Ordering;
use std::fmt::Debug;

use super::super::exp::exp;
use super::super::sums::BLOCK;
use super::masses::Masses;

/// How many candidates a run sorts at first; four times more whenever they are not enough.
const FIRST_SORTED: usize = 64;

/// A logit and its token.
pub(in crate::law) type Candidate = (f32, u32);

/// The order from the most likely token down, equal logits in the order of their ids.
pub(in crate::law) fn by_rank(one: &Candidate, other: &Candidate) -> Ordering {
    other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
}

/// A rule that keeps some of the tokens of a law, which is then renormalised.
pub(in crate::law) trait Cut: Debug + Send + Sync {
    /// What the rule looks at.
    fn reads(&self) -> Reads;

    /// What a block of 32 tokens must weigh to hold one that is kept.
    ///
    /// The largest token of a block weighs no more than the block and no less than a 32nd of it.
    fn least_block(&self, _blocks: &Blocks<'_>) -> f64 {
        0.0
    }

    /// A logit below which no token is kept.
    fn floor(&self, _peaks: &Peaks<'_>) -> f64 {
        f64::NEG_INFINITY
    }

    /// Drops the candidates that are not kept. At least one stays where there is one.
    fn keep(&self, candidates: &mut Candidates);
}

/// How much of a law a cut must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::law) enum Reads {
    /// The tokens that it keeps, which are the most likely ones.
    Top,
    /// These, and the weight of all tokens together.
    Sum,
    /// Every token.
    All,
}

/// What is known of the blocks of a law before its tokens are looked at.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Blocks<'a> {
    /// The weight of each block.
    pub(in crate::law) sums: &'a [f64],
    /// The weight of all of them.
    pub(in crate::law) total: f64,
    /// The number of tokens.
    pub(in crate::law) len: usize,
}

impl Blocks<'_> {
    /// The weight of the heaviest block.
    pub(in crate::law) fn heaviest(&self) -> f64 {
        self.sums.iter().copied().fold(0.0, f64::max)
    }

    /// What the most likely token weighs at least.
    pub(in crate::law) fn best(&self) -> f64 {
        self.heaviest() / BLOCK as f64
    }
}

/// What is known of the tokens of a law before they are listed.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Peaks<'a> {
    /// The largest logits of the blocks that may hold a token that is kept.
    pub(in crate::law) logits: &'a [f32],
    /// The weight of all tokens.
    pub(in crate::law) total: f64,
    /// The number of tokens.
    pub(in crate::law) len: usize,
    /// What the weights are relative to.
    pub(in crate::law) scale: Scale,
}

impl Peaks<'_> {
    /// The largest logit.
    pub(in crate::law) fn best(&self) -> f64 {
        f64::from(self.logits.iter().copied().fold(f32::NEG_INFINITY, f32::max))
    }

    /// The logit of a token that weighs this share of the most likely one.
    pub(in crate::law) fn below_best(&self, share: f64) -> f64 {
        self.best() + share.ln() / self.scale.factor
    }
}

/// How a logit becomes a weight.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Scale {
    /// What differences of logits are multiplied with to become differences of logarithms.
    pub(in crate::law) factor: f64,
    /// The logit that weighs 1.
    pub(in crate::law) peak: f32,
}

impl Scale {
    /// The logarithm of a token's weight.
    pub(in crate::law) fn log_weight(self, candidate: &Candidate) -> f64 {
        (f64::from(candidate.0) - f64::from(self.peak)) * self.factor
    }

    /// A token's weight.
    pub(in crate::law) fn weight(self, candidate: &Candidate) -> f64 {
        exp(self.log_weight(candidate))
    }

    /// The logit of a weight.
    pub(in crate::law) fn logit(self, weight: f64) -> f64 {
        f64::from(self.peak) + weight.ln() / self.factor
    }
}

/// The tokens of a law that may be kept.
#[derive(Clone, Debug)]
pub(in crate::law) struct Candidates {
    listed: Vec<Candidate>,
    scale: Scale,
    /// The weight of the law; unknown where a cut has dropped something since.
    sum: Option<f64>,
}

impl Candidates {
    /// The candidates of a law of this weight.
    pub(in crate::law) fn new(listed: Vec<Candidate>, scale: Scale, sum: f64) -> Self {
        Candidates {
            listed,
            scale,
            sum: Some(sum),
        }
    }

    /// How logits become weights.
    pub(in crate::law) fn scale(&self) -> Scale {
        self.scale
    }

    /// The candidates in no order.
    pub(in crate::law) fn listed(&self) -> &[Candidate] {
        &self.listed
    }

    /// The weight of the law.
    pub(in crate::law) fn sum(&mut self) -> f64 {
        let (listed, scale) = (&self.listed, self.scale);
        let all = || listed.iter().map(|candidate| scale.weight(candidate)).sum();
        *self.sum.get_or_insert_with(all)
    }

    /// The mean of the logarithms of the weights, each token counted by its probability. The entropy of the
    /// law is the logarithm of its sum less this.
    pub(in crate::law) fn mean_log_weight(&mut self) -> f64 {
        let sum = self.sum();
        let of = |candidate| self.scale.log_weight(candidate) * self.scale.weight(candidate);
        self.listed.iter().map(of).sum::<f64>() / sum
    }

    /// The most likely candidate.
    pub(in crate::law) fn best(&self) -> Option<Candidate> {
        self.listed.iter().copied().min_by(by_rank)
    }

    /// Keeps the fewest of the most likely whose masses together are at least this share of the law's.
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

    /// Keeps this number of the most likely.
    pub(in crate::law) fn keep_top(&mut self, count: usize) {
        if (1..self.listed.len()).contains(&count) {
            self.listed.select_nth_unstable_by(count - 1, by_rank);
        }
        self.listed.truncate(count);
        self.sum = None;
    }

    /// Keeps those for which `is_kept` holds.
    pub(in crate::law) fn keep_if(&mut self, is_kept: impl Fn(&Candidate) -> bool) {
        self.listed.retain(is_kept);
        self.sum = None;
    }

    /// Keeps the candidates that weigh at least this, and the most likely one in any case.
    pub(in crate::law) fn keep_from(&mut self, least: f64) {
        let (best, scale) = (self.best(), self.scale);
        self.keep_if(|candidate| scale.weight(candidate) >= least);
        if self.listed.is_empty() {
            self.listed.extend(best);
        }
    }

    /// Keeps the longest run, in this order, of candidates for which `goes_on` holds. Only as much as the run
    /// is sorted.
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

    /// Puts this number of the most likely first, in order; there may be fewer.
    pub(in crate::law) fn best_first(&mut self, count: usize) -> &[Candidate] {
        let sorted = self.sort(0, count, &by_rank);
        &self.listed[..sorted]
    }

    /// Sorts the first `size` of those from `done` on, and says where they end.
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

    /// The tokens, by id.
    pub(in crate::law) fn into_tokens(self) -> Vec<u32> {
        let mut tokens: Vec<u32> = self.listed.into_iter().map(|(_, token)| token).collect();
        tokens.sort_unstable();
        tokens
    }
}
