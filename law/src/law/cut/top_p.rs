//! Top-p, or nucleus sampling: the fewest most likely tokens whose probabilities together reach `p`.
//!
//! A. Holtzman, J. Buys, L. Du, M. Forbes, Y. Choi, *The Curious Case of Neural Text Degeneration*, 2019,
//! arXiv 1904.09751. Probabilities are added as integers ([`masses`](super::masses)), so that a card that
//! adds them in another order keeps the same tokens. Cost: the tokens of the nucleus are sorted, and all
//! tokens are listed but those so light that they would all fit into `1 − p`.

use super::candidates::{Blocks, Candidates, Cut, Peaks, Reads};
use super::masses::ROUNDING;

/// The share of the law that is kept; above 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct TopP(pub(in crate::law) f64);

impl TopP {
    /// Returns the share of the law that unlisted tokens may hold, however masses are rounded.
    fn rest(self) -> f64 {
        (1.0 - self.0 - ROUNDING).max(0.0)
    }
}

impl Cut for TopP {
    fn reads(&self) -> Reads {
        Reads::Sum
    }

    /// Tokens below this weight together hold at most the share that is cut.
    fn least_block(&self, blocks: &Blocks<'_>) -> f64 {
        self.rest() * blocks.total / blocks.len as f64
    }

    /// So do tokens this far below the best.
    fn floor(&self, peaks: &Peaks<'_>) -> f64 {
        peaks.below_best(self.rest() / peaks.len as f64)
    }

    fn keep(&self, candidates: &mut Candidates) {
        candidates.keep_share(self.0);
    }
}
