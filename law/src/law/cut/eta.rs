//! Eta sampling: the tokens whose probability is at least `η = min(ε, √ε · exp(−H))`, with `H` the entropy of
//! the law, and the most likely one in any case.
//!
//! J. Hewitt, C. D. Manning, P. Liang, *Truncation Sampling as Language Model Desmoothing*, 2022, arXiv
//! 2210.15191, section 4.2, with the authors' choice of `α = √ε`. Cost: every remaining token is listed and
//! its weight is computed once more.

use super::candidates::{Candidates, Cut, Reads};

/// `ε`: the least probability of a token that is kept, if the entropy of the law is small.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Eta(pub(in crate::law) f64);

impl Cut for Eta {
    fn reads(&self) -> Reads {
        Reads::All
    }

    fn keep(&self, candidates: &mut Candidates) {
        let sum = candidates.sum();
        let entropy = sum.ln() - candidates.mean_log_weight();
        let least = self.0.min(self.0.sqrt() * (-entropy).exp());
        candidates.keep_from(least * sum);
    }
}
