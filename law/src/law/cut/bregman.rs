//! Bregman top-k under the Kullback–Leibler divergence: the `k` most likely tokens, for the `k` that balances
//! the mass lost against the number of tokens kept.
//!
//! G. Noarov, S. Mallick, T. Wang, S. Joshi, Y. Sun, Y. Xie, M. Yu, E. Dobriban, *Foundations of Top-k
//! Decoding for Language Models*, 2025, arXiv 2505.19371. A decoder of theirs replaces the law `p` by the `q`
//! that minimises `D(q, p) + λ ‖q‖₀`, where `D` is a separable Bregman divergence and `‖q‖₀` the number of
//! tokens that keep probability. Under the Kullback–Leibler divergence the best `q` of `k` tokens is the
//! renormalised top-k, at the cost
//!
//! ```text
//!   cost(k) = −ln S(k) + λ k        S(k) = p₁ + … + p_k
//! ```
//!
//! which is discretely convex, because `p_{k+1} / S(k)` falls with `k`. So the `k + 1`-st token is kept as
//! long as `p_{k+1} > (e^λ − 1) S(k)`, and the search ends at the first that is not. Other divergences also
//! change the ratios of the tokens kept, which no cut does; they are not implemented here.
//!
//! Cost: the tokens that are kept are sorted. None of them weighs less than `e^λ − 1` times the best.

use super::candidates::{Blocks, Candidates, Cut, Peaks, Reads, by_rank};

/// The cost `λ` of a token; above 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Bregman(pub(in crate::law) f64);

impl Bregman {
    /// Returns the weight that a token must have, as a share of the weight of all more likely tokens.
    fn share(self) -> f64 {
        self.0.exp_m1()
    }
}

impl Cut for Bregman {
    fn reads(&self) -> Reads {
        Reads::Top
    }

    /// The most likely token is kept, whatever a token costs.
    fn least_block(&self, blocks: &Blocks<'_>) -> f64 {
        self.share().min(1.0) * blocks.best()
    }

    fn floor(&self, peaks: &Peaks<'_>) -> f64 {
        peaks.below_best(self.share().min(1.0))
    }

    fn keep(&self, candidates: &mut Candidates) {
        let (share, scale) = (self.share(), candidates.scale());
        let mut sum = 0.0;
        candidates.keep_run(by_rank, |candidate| {
            let weight = scale.weight(candidate);
            let is_kept = sum == 0.0 || weight > share * sum;
            sum += weight;
            is_kept
        });
    }
}
