//! Mirostat: a bound on the surprise of a token, adjusted so that the text reaches a target surprise.
//!
//! S. Basu, G. S. Ramachandran, N. S. Keskar, L. R. Varshney, *Mirostat: A Neural Text Decoding Algorithm
//! that Directly Controls Perplexity*, 2020, arXiv 2007.14966. The bound `μ` begins at `2 τ` bits. After a
//! token of surprise `S` it becomes `μ − η (S − τ)`.
//!
//! | version | keeps | surprise `S` of the token |
//! |---|---|---|
//! | 1 | the `k` most likely tokens, `k = (ε̂ 2^μ / (1 − N^−ε̂))^(1/ŝ)`, rounded, at least 1 | `−log₂` of its share of the mask |
//! | 2 | the tokens with `−log₂ p ≤ μ`, and the most likely one in any case | `−log₂` of its share of what is kept |
//!
//! Version 1 assumes that the law is Zipf's: `ŝ = Σ tᵢ bᵢ / Σ tᵢ²` is the exponent that best fits its 100
//! most likely tokens, with `tᵢ = ln ((i + 1) / i)` and `bᵢ = ln (pᵢ / pᵢ₊₁)`; `ε̂ = ŝ − 1`, and `N` is the
//! number of remaining tokens. Version 2, by the same authors, needs no such estimate; its cut is [`Epsilon`]
//! with `ε = 2^−μ`.
//!
//! **Under a mask.** The cut is the last one and cuts the masked row, and `S` is relative to the mask, so
//! that the surprise of a text is steered whether a grammar makes the text likely or unlikely. A token that
//! is the only one in the mask is not counted: its surprise is 0 whatever `μ` is, and a run of such tokens
//! would raise `μ` beyond any bound.
//!
//! **State.** `μ` is a function of the tokens drawn: the [`Walk`](crate::law::Walk) that counts them keeps
//! it, forks and rewinds with it, and a draft that is verified by drawing once sees the same `μ` as decoding
//! without drafts.
//!
//! Cost: version 1 lists every remaining token and sorts a hundred of them; version 2 compares the tokens
//! above its bound, which is a logit.

use std::sync::Arc;

use super::candidates::{Candidates, Cut, Reads};
use super::epsilon::Epsilon;

/// The number of tokens from which the exponent of Zipf's law is estimated.
const ESTIMATED_FROM: usize = 100;
/// A token whose surprise is at most this many bits counts as forced, not chosen.
const FORCED: f64 = 1e-6;

/// The version of the Mirostat algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirostatVersion {
    /// Keeps the `k` most likely tokens, with `k` from an estimate of the law's exponent.
    One,
    /// Keeps the tokens whose surprise is not above the bound.
    Two,
}

/// The parameters of Mirostat; see the table in [`law`](crate::law#filters-and-the-mask).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mirostat {
    /// The version of the algorithm.
    pub version: MirostatVersion,
    /// `τ`, the target surprise of a token, in bits.
    pub tau: f32,
    /// `η`, the share of the error of one token that is corrected at the next.
    pub eta: f32,
}

/// The bound on the surprise of one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    version: MirostatVersion,
    bits: f64,
}

/// The logarithms of three probabilities of a drawn token: of the token itself, of the mask, and of the part
/// of the mask that was kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::law) struct Logs {
    pub(in crate::law) token: f64,
    pub(in crate::law) mass: f64,
    pub(in crate::law) kept: f64,
}

impl Mirostat {
    /// Returns the bound for the first token of a text.
    pub(in crate::law) fn first(&self) -> Ceiling {
        Ceiling {
            version: self.version,
            bits: 2.0 * f64::from(self.tau),
        }
    }

    /// Returns the bound for the token that follows one that was drawn under `ceiling`.
    pub(in crate::law) fn next(&self, ceiling: Ceiling, drawn: Logs) -> Ceiling {
        let of_mask = bits(drawn.mass - drawn.token);
        if of_mask <= FORCED {
            return ceiling;
        }
        let surprise = match self.version {
            MirostatVersion::One => of_mask,
            MirostatVersion::Two => bits(drawn.kept - drawn.token),
        };
        Ceiling {
            bits: ceiling.bits - f64::from(self.eta) * (surprise - f64::from(self.tau)),
            ..ceiling
        }
    }
}

impl Ceiling {
    /// Returns `μ`, the bound in bits.
    pub fn bits(&self) -> f64 {
        self.bits
    }

    /// Returns the cut that enforces this bound.
    pub(in crate::law) fn cut(self) -> Arc<dyn Cut> {
        match self.version {
            MirostatVersion::One => Arc::new(Zipf(self.bits)),
            MirostatVersion::Two => Arc::new(Epsilon((-self.bits).exp2())),
        }
    }
}

/// Converts nats to bits.
fn bits(nats: f64) -> f64 {
    nats / std::f64::consts::LN_2
}

/// Keeps the most likely tokens of a law that is assumed to be Zipf's, up to this surprise in bits.
#[derive(Clone, Copy, Debug)]
struct Zipf(f64);

impl Zipf {
    /// Returns how many of `count` tokens are kept, given the log weights of the most likely ones.
    fn kept(self, best: &[f64], count: usize) -> usize {
        let (mut product, mut square) = (0.0, 0.0);
        for (index, pair) in best.windows(2).enumerate() {
            let rank = (index + 1) as f64;
            let t = ((rank + 1.0) / rank).ln();
            product += t * (pair[0] - pair[1]);
            square += t * t;
        }
        let exponent = product / square;
        let epsilon = exponent - 1.0;
        let log_count = (count as f64).ln();
        // The limit of ε̂ / (1 − N^−ε̂) as ε̂ goes to zero.
        let factor = match epsilon {
            0.0 => 1.0 / log_count,
            epsilon => epsilon / -(-epsilon * log_count).exp_m1(),
        };
        let kept = (factor * self.0.exp2()).powf(1.0 / exponent).round();
        // NaN keeps the most likely token.
        kept.max(1.0).min(count as f64) as usize
    }
}

impl Cut for Zipf {
    fn reads(&self) -> Reads {
        Reads::All
    }

    fn keep(&self, candidates: &mut Candidates) {
        let (count, scale) = (candidates.listed().len(), candidates.scale());
        if count < 2 {
            return;
        }
        let best = candidates.best_first(ESTIMATED_FROM).iter();
        let best: Vec<f64> = best.map(|candidate| scale.log_weight(candidate)).collect();
        candidates.keep_top(self.kept(&best, count));
    }
}
