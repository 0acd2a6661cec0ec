//! The plausibility constraint of contrastive decoding: the tokens that the expert finds at least `α` times
//! as likely as its most likely one.
//!
//! X. L. Li, A. Holtzman, D. Fried, P. Liang, J. Eisner, T. Hashimoto, L. Zettlemoyer, M. Lewis, *Contrastive
//! Decoding: Open-ended Text Generation as Optimization*, 2022, arXiv 2210.15097: `p_expert(x) ≥ α max
//! p_expert`. The maximum is taken over the remaining tokens, so the constraint never empties a mask. Cost:
//! every remaining token is listed, because the logits that are drawn from do not determine the expert's.

use std::sync::Arc;

use super::candidates::{Candidate, Candidates, Cut, Reads};

/// The expert's logits and the share of its most likely token's probability.
#[derive(Clone, Debug)]
pub(in crate::law) struct Plausible {
    /// The logits, by token.
    pub(in crate::law) expert: Arc<[f32]>,
    /// `α`; above 0 and at most 1.
    pub(in crate::law) alpha: f64,
}

impl Cut for Plausible {
    fn reads(&self) -> Reads {
        Reads::All
    }

    fn keep(&self, candidates: &mut Candidates) {
        let expert = |candidate: &Candidate| {
            let logit = self.expert.get(candidate.1 as usize);
            logit.map_or(f64::NEG_INFINITY, |&logit| f64::from(logit))
        };
        let logits = candidates.listed().iter().map(expert);
        let least = logits.fold(f64::NEG_INFINITY, f64::max) + self.alpha.ln();
        candidates.keep_if(|candidate| expert(candidate) >= least);
    }
}
