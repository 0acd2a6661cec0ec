//! Cuts: rules that keep some of the tokens of a law.
//!
//! | cut | keeps | reads |
//! |---|---|---|
//! | [`plausible`] | tokens that the expert of contrastive decoding finds plausible | all |
//! | [`top_n_sigma`] | logits at most `n` standard deviations below the largest | all |
//! | [`top_k`] | the `k` most likely tokens | top |
//! | [`typical`] | the fewest tokens of nearly the expected surprise that reach `τ` | all |
//! | [`top_p`] | the fewest most likely tokens that reach `p` | sum |
//! | [`min_p`] | tokens at least `min_p` times as likely as the most likely one | top |
//! | [`epsilon`] | tokens at least as likely as `ε` | sum |
//! | [`eta`] | tokens at least as likely as `ε`, or less where the entropy is large | all |
//! | [`bregman`] | the `k` most likely tokens, for the `k` of the lowest cost | top |
//! | [`mirostat`] | tokens that are not too surprising after the text so far | all, or sum |
//!
//! This is also the order in which they run: each cuts the renormalised law that the one before it left.
//! Every cut keeps at least one token.
//!
//! **Which tokens are listed.** A row of 128,000 tokens is cut to a few, and most are never listed: the first
//! cut, and those after it that read only the top of the law, bound the blocks and the logits that can hold a
//! token that they keep. A cut that reads all the tokens ends this, because tokens that are not listed would
//! be missing from its sums; if it is the first cut, every token is listed.

mod bregman;
mod candidates;
mod epsilon;
mod eta;
mod masses;
mod min_p;
mod mirostat;
mod plausible;
mod top_k;
mod top_n_sigma;
mod top_p;
mod typical;

use std::sync::Arc;

pub(super) use bregman::Bregman;
pub(super) use candidates::{Blocks, Candidate, Candidates, Cut, Peaks, Scale};
pub(super) use epsilon::Epsilon;
pub(super) use eta::Eta;
pub(super) use min_p::MinP;
pub(super) use mirostat::Logs;
pub use mirostat::{Ceiling, Mirostat, MirostatVersion};
pub(super) use plausible::Plausible;
pub(super) use top_k::TopK;
pub(super) use top_n_sigma::TopNSigma;
pub(super) use top_p::TopP;
pub(super) use typical::Typical;

use candidates::Reads;

/// Cuts in the order in which they run.
pub(super) type Cuts = [Arc<dyn Cut>];

/// Returns the cuts that may bound the tokens to list: the first, and those after it that read only the top
/// of the law.
fn leading(cuts: &Cuts) -> impl Iterator<Item = &Arc<dyn Cut>> {
    let bounds = |&(index, cut): &(usize, &Arc<dyn Cut>)| match cut.reads() {
        Reads::Top => true,
        Reads::Sum => index == 0,
        Reads::All => false,
    };
    cuts.iter().enumerate().take_while(bounds).map(|(_, cut)| cut)
}

/// Returns the weight below which a block of 32 tokens cannot hold a token that is kept, so that few blocks
/// are read.
pub(super) fn least_block(cuts: &Cuts, blocks: &Blocks<'_>) -> f64 {
    let least = leading(cuts).map(|cut| cut.least_block(blocks));
    // Leaves room for rounding errors.
    least.fold(0.0, f64::max) * (1.0 - 1e-6)
}

/// Returns a logit below which no token can be kept, so that few tokens are read.
pub(super) fn floor(cuts: &Cuts, peaks: &Peaks<'_>) -> f32 {
    let floor = leading(cuts)
        .map(|cut| cut.floor(peaks))
        .fold(f64::NEG_INFINITY, f64::max);
    // Leaves room for rounding errors.
    (floor - 1e-3 - floor.abs() * 1e-6) as f32
}

/// Returns the tokens kept, by id. The candidates leave out only tokens below the [`floor`].
pub(super) fn keep(cuts: &Cuts, mut candidates: Candidates) -> Vec<u32> {
    for cut in cuts {
        cut.keep(&mut candidates);
    }
    candidates.into_tokens()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs cuts over a row of probabilities in groups of two.
    fn kept(cuts: &[Arc<dyn Cut>], probabilities: &[f32]) -> Vec<u32> {
        let logits: Vec<f32> = probabilities.iter().map(|p| p.ln()).collect();
        let largest = |group: &[f32]| group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let peaks: Vec<f32> = logits.chunks(2).map(largest).collect();
        let scale = Scale {
            factor: 1.0,
            peak: largest(&logits),
        };
        let total = logits
            .iter()
            .map(|&logit| f64::from(logit - scale.peak).exp())
            .sum();
        let peaks = Peaks {
            logits: &peaks,
            total,
            len: logits.len(),
            scale,
        };
        let floor = floor(cuts, &peaks);
        let listed = logits.iter().copied().zip(0..);
        let listed = listed.filter(|&(logit, _)| logit >= floor).collect();
        keep(cuts, Candidates::new(listed, scale, total))
    }

    #[test]
    fn each_cut_keeps_its_tokens() {
        let keep = |cut: Arc<dyn Cut>| kept(&[cut], &[0.1, 0.4, 0.15, 0.3, 0.05]);
        assert_eq!(kept(&[], &[0.1, 0.4, 0.15, 0.3, 0.05]), [0, 1, 2, 3, 4]);
        assert_eq!(keep(Arc::new(TopK(2))), [1, 3]);
        assert_eq!(keep(Arc::new(TopK(9))), [0, 1, 2, 3, 4]);
        assert_eq!(keep(Arc::new(TopP(0.75))), [1, 2, 3]);
        assert_eq!(keep(Arc::new(MinP(0.3))), [1, 2, 3]);
        assert_eq!(keep(Arc::new(Epsilon(0.12))), [1, 2, 3]);
        assert_eq!(keep(Arc::new(Epsilon(0.5))), [1]);
        // The entropy is 1.392: exp(−1.392) · √0.3 = 0.136.
        assert_eq!(keep(Arc::new(Eta(0.3))), [1, 2, 3]);
        // Surprises 2.30, 0.92, 1.90, 1.20 and 3.00: 0.3 is nearest to the entropy, then 0.4.
        assert_eq!(keep(Arc::new(Typical(0.2))), [3]);
        assert_eq!(keep(Arc::new(Typical(0.5))), [1, 3]);
        // The next token is 0.3 / 0.4, 0.15 / 0.7, 0.1 / 0.85 and 0.05 / 0.95 of those before it.
        assert_eq!(keep(Arc::new(Bregman(0.15_f64.ln_1p()))), [1, 2, 3]);
        assert_eq!(keep(Arc::new(Bregman(2.0))), [1]);
        // Of the logarithms the mean is −1.868 and the standard deviation 0.750.
        assert_eq!(keep(Arc::new(TopNSigma(1.0))), [1, 3]);
        // The expert finds the others at most e^−2 times as likely as token 4.
        let expert = [0.0, 1.0, 2.5, 2.0, 3.0].into();
        assert_eq!(keep(Arc::new(Plausible { expert, alpha: 0.5 })), [2, 4]);
    }

    #[test]
    fn each_cut_is_of_what_the_one_before_left() {
        let row = [0.1, 0.4, 0.15, 0.3, 0.05];
        // Of 0.4 and 0.3, renormalised, the first alone holds more than half.
        assert_eq!(kept(&[Arc::new(TopK(2)), Arc::new(TopP(0.5))], &row), [1]);
        // Renormalised over 0.4, 0.3 and 0.15, the last has 0.176.
        let cuts: [Arc<dyn Cut>; 2] = [Arc::new(TopP(0.75)), Arc::new(Epsilon(0.16))];
        assert_eq!(kept(&cuts, &row), [1, 2, 3]);
        // The most likely token is gone when the others are compared with the best.
        let cuts: [Arc<dyn Cut>; 2] = [Arc::new(Typical(0.2)), Arc::new(MinP(1.0))];
        assert_eq!(kept(&cuts, &row), [3]);
    }

    #[test]
    fn ties_go_to_the_smaller_id_and_long_runs_are_sorted_in_pieces() {
        let row = [0.001; 1000];
        assert_eq!(kept(&[Arc::new(TopP(0.9))], &row), (0..900).collect::<Vec<u32>>());
        assert_eq!(kept(&[Arc::new(TopK(3))], &row), [0, 1, 2]);
        assert_eq!(
            kept(&[Arc::new(Typical(0.1))], &row),
            (0..100).collect::<Vec<u32>>()
        );
    }
}
