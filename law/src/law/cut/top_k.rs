//! Top-k: the `k` most likely tokens.
//!
//! A. Fan, M. Lewis, Y. Dauphin, *Hierarchical Neural Story Generation*, 2018, arXiv 1805.04833. Equal logits
//! are kept in the order of their ids. Cost: a selection among the blocks and one among the tokens above the
//! `k`-th largest of their peaks.

use super::super::distribution::BLOCK;
use super::candidates::{Blocks, Candidates, Cut, Peaks, Reads};

/// The number of tokens to keep.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct TopK(pub(in crate::law) usize);

impl Cut for TopK {
    fn reads(&self) -> Reads {
        Reads::Top
    }

    /// The `k` heaviest blocks hold `k` tokens that each weigh at least a 32nd of the lightest of these
    /// blocks.
    fn least_block(&self, blocks: &Blocks<'_>) -> f64 {
        if self.0 > blocks.sums.len() {
            return 0.0;
        }
        let mut sums = blocks.sums.to_vec();
        let (_, least, _) = sums.select_nth_unstable_by(self.0.max(1) - 1, |a, b| b.total_cmp(a));
        *least / BLOCK as f64
    }

    /// The `k`-th largest peak is at most the `k`-th largest logit.
    fn floor(&self, peaks: &Peaks<'_>) -> f64 {
        if self.0 > peaks.logits.len() {
            return f64::NEG_INFINITY;
        }
        let mut logits = peaks.logits.to_vec();
        let (_, least, _) = logits.select_nth_unstable_by(self.0.max(1) - 1, |a, b| b.total_cmp(a));
        f64::from(*least)
    }

    fn keep(&self, candidates: &mut Candidates) {
        candidates.keep_top(self.0);
    }
}
