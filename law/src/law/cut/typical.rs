//! Locally typical sampling: the fewest tokens whose surprise is nearest to the expected one and whose
//! probabilities together reach `τ`.
//!
//! C. Meister, T. Pimentel, G. Wiher, R. Cotterell, *Locally Typical Sampling*, 2022, arXiv 2202.00666. With
//! `H` the entropy of the law, tokens are kept in the order of `|H + ln p(x)|` until they reach `τ`; at equal
//! distances the more likely token comes first, then the smaller id. The most likely token may be among those
//! that are dropped.
//!
//! `ln p(x)` is the log weight minus the log of the sum, and `−H` is its mean: the distance is that between a
//! log weight and the mean log weight, and no logarithm is taken. Cost: every remaining token is listed and
//! its weight is computed once more.

use super::candidates::{Candidate, Candidates, Cut, Reads, by_rank};

/// The share of the law that is kept; above 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Typical(pub(in crate::law) f64);

impl Cut for Typical {
    fn reads(&self) -> Reads {
        Reads::All
    }

    fn keep(&self, candidates: &mut Candidates) {
        let (bound, scale) = (self.0 * candidates.sum(), candidates.scale());
        let mean = candidates.mean_log_weight();
        let distance = |candidate: &Candidate| (scale.log_weight(candidate) - mean).abs();
        let order = |one: &Candidate, other: &Candidate| {
            distance(one)
                .total_cmp(&distance(other))
                .then_with(|| by_rank(one, other))
        };
        let mut reached = 0.0;
        candidates.keep_run(order, |candidate| {
            let before = reached;
            reached += scale.weight(candidate);
            before < bound
        });
    }
}
