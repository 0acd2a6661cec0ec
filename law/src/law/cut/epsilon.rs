//! Epsilon sampling: the tokens whose probability is at least `ε`, and the most likely one in any case.
//!
//! J. Hewitt, C. D. Manning, P. Liang, *Truncation Sampling as Language Model Desmoothing*, 2022, arXiv
//! 2210.15191, section 4.1. Cost: one comparison for each token above the bound, which is a logit.

use super::candidates::{Blocks, Candidates, Cut, Peaks, Reads};

/// The least probability of a token that is kept.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Epsilon(pub(in crate::law) f64);

impl Cut for Epsilon {
    fn reads(&self) -> Reads {
        Reads::Sum
    }

    /// The most likely token is kept, however unlikely it is.
    fn least_block(&self, blocks: &Blocks<'_>) -> f64 {
        (self.0 * blocks.total).min(blocks.best())
    }

    fn floor(&self, peaks: &Peaks<'_>) -> f64 {
        peaks.scale.logit(self.0 * peaks.total).min(peaks.best())
    }

    fn keep(&self, candidates: &mut Candidates) {
        let least = self.0 * candidates.sum();
        candidates.keep_from(least);
    }
}
