//! Min-p: the tokens whose probability is at least a share of the largest one, `p(x) ≥ min_p · max p`.
//!
//! N. N. Minh and others, *Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs*, 2024,
//! arXiv 2407.01082. Cost: one comparison for each token above the bound, which is a logit.

use super::candidates::{Blocks, Candidates, Cut, Peaks, Reads};

/// The share of the most likely token's probability; above 0 and at most 1.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct MinP(pub(in crate::law) f64);

impl Cut for MinP {
    fn reads(&self) -> Reads {
        Reads::Top
    }

    fn least_block(&self, blocks: &Blocks<'_>) -> f64 {
        self.0 * blocks.best()
    }

    fn floor(&self, peaks: &Peaks<'_>) -> f64 {
        peaks.below_best(self.0)
    }

    fn keep(&self, candidates: &mut Candidates) {
        let scale = candidates.scale();
        let Some(best) = candidates.best() else {
            return;
        };
        let least = self.0 * scale.weight(&best);
        candidates.keep_if(|candidate| scale.weight(candidate) >= least);
    }
}
