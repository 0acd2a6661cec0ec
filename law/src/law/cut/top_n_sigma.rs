//! Top-nσ: the tokens whose logits are at most `n` standard deviations below the largest one.
//!
//! C. Tang, J. Liu, H. Xu, L. Huang, *Top-nσ: Not All Logits Are You Need*, 2024, arXiv 2411.07641: `l(x) ≥
//! max l − n σ`, where `σ² = mean (l − mean l)²` over the remaining tokens with a finite logit. Logits and
//! `σ` both scale with 1 over the temperature, so that the temperature does not change which tokens are kept.
//! Cost: every remaining token is listed, and two passes sum its logit and its square.

use super::candidates::{Candidates, Cut, Reads};

/// The number of standard deviations; above 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct TopNSigma(pub(in crate::law) f64);

impl Cut for TopNSigma {
    fn reads(&self) -> Reads {
        Reads::All
    }

    fn keep(&self, candidates: &mut Candidates) {
        let count = candidates.listed().len() as f64;
        let logits = || candidates.listed().iter().map(|candidate| f64::from(candidate.0));
        let mean = logits().sum::<f64>() / count;
        let variance = logits().map(|logit| (logit - mean).powi(2)).sum::<f64>() / count;
        let best = logits().fold(f64::NEG_INFINITY, f64::max);
        let least = best - self.0 * variance.sqrt();
        candidates.keep_if(|candidate| f64::from(candidate.0) >= least);
    }
}
