//! A law of the next token from a row of logits: sums by block, so that a draw reads few tokens.
//!
//! ```text
//!   logits   │ 32 tokens │ 32 tokens │ 32 tokens │ …     one pass finds the peak, one the sum of every block
//!   mask     │ all       │ none      │ some bits │ …     whole blocks take the sum of the row, empty ones cost nothing
//!   sums     │ 0.31      │ 0         │ 0.02      │ …     a draw chooses a block by these, then a token inside it
//!   cuts     │ can hold a kept token   │ cannot    │ …     only blocks that can are looked at, by their sums
//! ```
//!
//! Sums are kept relative to a peak, in `f64`. If a mask leaves only tokens hundreds of nats below the peak
//! of the row, the row is measured again relative to the peak inside the mask, so a law is accurate however
//! unlikely its tokens are.

mod exp;
mod sums;

use std::borrow::Cow;

use super::cut::{self, Blocks, Candidate, Candidates, Cuts, Peaks, Scale};
use super::row::Allowed;
use super::{Ceiling, Chooser, Part, Place, Row};
pub(super) use exp::exp;
pub(super) use sums::BLOCK;
use sums::Sums;

/// The bit of each token of a block. Testing against these constants, rather than shifting by a variable, is
/// what the compiler can vectorise.
const BITS: [u32; BLOCK] = {
    let mut bits = [0; BLOCK];
    let mut at = 0;
    while at < BLOCK {
        bits[at] = 1 << at;
        at += 1;
    }
    bits
};
/// At most this many tokens of a block are exponentiated one by one: a cut leaves one or two in most blocks
/// in which it leaves any.
const FEW_TOKENS: u32 = 8;
/// A masked sum below this has lost digits to underflow and is computed again.
const LEAST_SUM: f64 = 1e-200;

/// The reason why a row of logits is no law.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum RowError {
    /// The model computed NaN or plus infinity.
    #[error("the logit of token {token} is {value}")]
    NotFinite {
        /// The first such token.
        token: u32,
        /// Its logit.
        value: f32,
    },
    /// Every logit is minus infinity, or there is none.
    #[error("no token has a finite logit")]
    Empty,
    /// Two rows to be contrasted belong to different vocabularies.
    #[error("the expert's row has {expert} logits, the amateur's {amateur}")]
    Unlike {
        /// The number of the expert's logits.
        expert: usize,
        /// The number of the amateur's logits.
        amateur: usize,
    },
}

/// Statistics of a row of logits that are known before the row is read: the device that computed the row can
/// compute them at almost no cost.
///
/// They must be true of the row; they only save work. A row that they cannot be true of is measured again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured<'a> {
    /// The largest logit.
    pub peak: f32,
    /// The factor of the differences of logits: 1 over the temperature
    /// ([`Warper::scale`](super::Warper::scale)).
    pub scale: f64,
    /// `Σ exp(scale · (logit − peak))` of every 32 tokens; the last sum covers the remaining tokens.
    pub sums: &'a [f64],
}

/// The law of the next token from logits; see [`Warper::row`](super::Warper::row).
#[derive(Clone, Debug)]
pub struct Distribution<'a> {
    logits: Cow<'a, [f32]>,
    scale: f64,
    /// The tokens that have probability; other logits are not read.
    support: Cow<'a, [u32]>,
    /// The logit that the sums are relative to: the largest one, or a larger number.
    peak: f32,
    sums: Sums,
    /// The cuts of each masked row; the row itself is not cut.
    masked: Cow<'a, Cuts>,
}

impl<'a> Distribution<'a> {
    /// Returns the law of these logits at temperature 1, with nothing cut.
    pub fn new(logits: &'a [f32]) -> Result<Self, RowError> {
        Self::scaled(Cow::Borrowed(logits), 1.0, Allowed::All)
    }

    /// Returns the law of these logits restricted to some tokens, as if the model could not write the others.
    pub fn among(logits: &'a [f32], tokens: Allowed<'a>) -> Result<Self, RowError> {
        Self::scaled(Cow::Borrowed(logits), 1.0, tokens)
    }

    /// Returns the law of measured logits, over all tokens. The logits of `changed` were changed after the
    /// measurement, so their blocks are summed again.
    pub(super) fn measured(
        logits: Cow<'a, [f32]>,
        measured: Measured<'_>,
        changed: &[u32],
    ) -> Result<Self, RowError> {
        let Measured { peak, scale, sums } = measured;
        let total: f64 = sums.iter().sum();
        // The peak itself contributes 1. Anything that is not a law takes the slow path, which names the
        // fault.
        let fits = sums.len() == logits.len().div_ceil(BLOCK) && total.is_finite() && total >= 0.5;
        let is_below = |&token: &u32| logits.get(token as usize).is_none_or(|&logit| logit <= peak);
        if !(fits && peak.is_finite() && changed.iter().all(is_below)) {
            return Self::scaled(logits, scale, Allowed::All);
        }
        let mut blocks = sums.to_vec();
        let mut stale: Vec<usize> = changed.iter().map(|&token| token as usize / BLOCK).collect();
        stale.sort_unstable();
        stale.dedup();
        for index in stale {
            if let Some(block) = logits.chunks(BLOCK).nth(index) {
                blocks[index] = block_sum(block, !0, peak, scale);
            }
        }
        let sums = Sums::of(blocks);
        if sums.total < LEAST_SUM {
            return Self::scaled(logits, scale, Allowed::All);
        }
        Ok(Distribution {
            support: Cow::Owned(Allowed::All.to_words(logits.len()).into_owned()),
            logits,
            scale,
            peak,
            sums,
            masked: Cow::default(),
        })
    }

    pub(super) fn scaled(logits: Cow<'a, [f32]>, scale: f64, tokens: Allowed<'a>) -> Result<Self, RowError> {
        let support = tokens.to_words(logits.len());
        let peak = peak_of(&logits, &support);
        let mut row = Distribution {
            logits,
            scale,
            support,
            peak,
            sums: Sums::default(),
            masked: Cow::default(),
        };
        row.sums = row.sums_of(&row.support, peak);
        if row.peak == f32::NEG_INFINITY || !row.sums.total.is_finite() {
            return Err(row.fault());
        }
        Ok(row)
    }

    /// Returns this row with cuts that apply to each masked row.
    pub(super) fn cut_masked(self, cuts: Cow<'a, Cuts>) -> Self {
        Distribution { masked: cuts, ..self }
    }

    /// Returns this row cut and renormalised.
    pub(super) fn cut_row(mut self, cuts: &Cuts) -> Self {
        let kept = self.kept(cuts, &self.support, (self.peak, &self.sums));
        self.sums = self.sums_of(&kept, self.peak);
        self.support = Cow::Owned(kept);
        self
    }

    /// Returns this row without the filters that cut its masked parts. For a greedy row this is the law at
    /// temperature 1.
    pub fn uncut(self) -> Self {
        Distribution {
            masked: Cow::default(),
            ..self
        }
    }

    /// Returns this row with its logits owned.
    pub fn into_owned(self) -> Distribution<'static> {
        let (logits, support) = (self.logits.into_owned(), self.support.into_owned());
        Distribution {
            logits: Cow::Owned(logits),
            support: Cow::Owned(support),
            masked: Cow::Owned(self.masked.into_owned()),
            ..self
        }
    }

    /// Returns the most likely tokens with their log probabilities, at most `count`, best first.
    pub fn top(&self, count: usize) -> Vec<(u32, f64)> {
        self.top_in(&self.support, count)
    }

    fn top_in(&self, words: &[u32], count: usize) -> Vec<(u32, f64)> {
        let words = Allowed::Words(words);
        let mut best: Vec<(f32, u32)> = Vec::with_capacity(count + 1);
        for (&logit, token) in self.logits.iter().zip(0..) {
            let full = best.len() == count;
            if count == 0
                || (full && best.last().is_some_and(|last| logit <= last.0))
                || !words.contains(token)
            {
                continue;
            }
            let at = best.partition_point(|other| other.0 >= logit);
            best.insert(at, (logit, token));
            best.truncate(count);
        }
        best.into_iter()
            .map(|(_, token)| (token, self.log_probability(token)))
            .collect()
    }

    fn has(&self, token: u32) -> bool {
        (token as usize) < self.logits.len() && Allowed::Words(&self.support).contains(token)
    }

    /// Returns `Σ exp(scale · (logit − peak))` over the tokens of each block that are in `words`, and the
    /// sums of these.
    fn sums_of(&self, words: &[u32], peak: f32) -> Sums {
        let known = |block: usize| self.sums.blocks.get(block).filter(|_| peak == self.peak);
        let sum = |(index, (block, &word)): (usize, (&[f32], &u32))| match (word, known(index)) {
            (0, _) => 0.0,
            (word, Some(&whole)) if word == self.support[index] => whole,
            _ => block_sum(block, word, peak, self.scale),
        };
        let blocks = self.logits.chunks(BLOCK).zip(words).enumerate().map(sum);
        Sums::of(blocks.collect())
    }

    /// Returns the tokens of `words` that the cuts keep, as packed words. `sums` are the sums of `words`
    /// relative to `peak`.
    fn kept(&self, cuts: &Cuts, words: &[u32], (peak, sums): (f32, &Sums)) -> Vec<u32> {
        let scale = Scale {
            factor: self.scale,
            peak,
        };
        let candidates = Candidates::new(self.candidates(cuts, words, scale, sums), scale, sums.total);
        let mut words = vec![0; self.support.len()];
        for token in cut::keep(cuts, candidates) {
            words[token as usize / BLOCK] |= BITS[token as usize % BLOCK];
        }
        words
    }

    /// Returns the tokens of `words` that the cuts may keep.
    fn candidates(&self, cuts: &Cuts, words: &[u32], scale: Scale, sums: &Sums) -> Vec<Candidate> {
        let (total, len) = (sums.total, self.logits.len());
        let blocks = Blocks {
            sums: &sums.blocks,
            total,
            len,
        };
        let least = cut::least_block(cuts, &blocks);
        let mut possible: Vec<(usize, f32)> = Vec::new();
        for (index, (block, &word)) in self.logits.chunks(BLOCK).zip(words).enumerate() {
            if word != 0 && sums.blocks[index] >= least {
                possible.push((index, block_peak(block, word)));
            }
        }
        let logits: Vec<f32> = possible.iter().map(|&(_, peak)| peak).collect();
        let peaks = Peaks {
            logits: &logits,
            total,
            len,
            scale,
        };
        let floor = cut::floor(cuts, &peaks);
        let mut candidates: Vec<Candidate> = Vec::new();
        for (index, _) in possible.into_iter().filter(|&(_, peak)| peak >= floor) {
            let first = index * BLOCK;
            let block = &self.logits[first..self.logits.len().min(first + BLOCK)];
            let is_possible = |&(logit, token): &Candidate| {
                logit >= floor
                    && logit > f32::NEG_INFINITY
                    && words[index] & BITS[token as usize % BLOCK] != 0
            };
            candidates.extend(block.iter().copied().zip(first as u32..).filter(is_possible));
        }
        candidates
    }

    fn fault(&self) -> RowError {
        let broken = |logit: f32| logit.is_nan() || logit == f32::INFINITY;
        match (0..)
            .zip(self.logits.iter())
            .find(|&(token, &logit)| self.has(token) && broken(logit))
        {
            Some((token, &value)) => RowError::NotFinite { token, value },
            None => RowError::Empty,
        }
    }
}

impl Row<f64> for Distribution<'_> {
    type Part<'b>
        = Portion<'b>
    where
        Self: 'b;

    fn len(&self) -> usize {
        self.logits.len()
    }

    fn probability(&self, token: u32) -> f64 {
        self.log_probability(token).exp()
    }

    fn log_probability(&self, token: u32) -> f64 {
        if !self.has(token) {
            return f64::NEG_INFINITY;
        }
        (f64::from(self.logits[token as usize]) - f64::from(self.peak)) * self.scale - self.sums.total.ln()
    }

    fn part_under<'b>(&'b self, allowed: Allowed<'b>, ceiling: Option<Ceiling>) -> Portion<'b> {
        let words: Vec<u32> = match allowed {
            Allowed::All => self.support.to_vec(),
            Allowed::Words(words) => words
                .iter()
                .zip(self.support.iter())
                .map(|(a, b)| a & b)
                .collect(),
        };
        let whole = Portion::measure(self, words);
        let mut cuts = Cow::Borrowed(&*self.masked);
        if let Some(ceiling) = ceiling {
            cuts.to_mut().push(ceiling.cut());
        }
        if cuts.is_empty() {
            return whole;
        }
        let kept = self.kept(&cuts, &whole.words, (whole.peak, &whole.sums));
        let log_mass = whole.log_mass;
        Portion {
            log_mass,
            ..Portion::measure(self, kept)
        }
    }
}

/// The part of a [`Distribution`] inside a mask.
#[derive(Clone, Debug)]
pub struct Portion<'a> {
    row: &'a Distribution<'a>,
    words: Vec<u32>,
    peak: f32,
    sums: Sums,
    log_mass: f64,
    log_kept: f64,
}

impl<'a> Portion<'a> {
    fn measure(row: &'a Distribution<'a>, words: Vec<u32>) -> Self {
        let mut peak = row.peak;
        let mut sums = row.sums_of(&words, peak);
        let own = if sums.total < LEAST_SUM {
            peak_of(&row.logits, &words)
        } else {
            peak
        };
        if own != peak && own > f32::NEG_INFINITY {
            peak = own;
            sums = row.sums_of(&words, peak);
        }
        let log_kept =
            (f64::from(peak) - f64::from(row.peak)) * row.scale + sums.total.ln() - row.sums.total.ln();
        Portion {
            row,
            words,
            peak,
            sums,
            log_mass: log_kept,
            log_kept,
        }
    }

    /// Returns the most likely tokens of the part with the logs of their shares, at most `count`, best first.
    pub fn top(&self, count: usize) -> Vec<(u32, f64)> {
        let mut top = self.row.top_in(&self.words, count);
        for (_, log_probability) in &mut top {
            *log_probability -= self.log_kept;
        }
        top
    }

    fn weight(&self, token: u32) -> f64 {
        match self.row.logits.get(token as usize) {
            Some(&logit) if Allowed::Words(&self.words).contains(token) => {
                exp((f64::from(logit) - f64::from(self.peak)) * self.row.scale)
            }
            _ => 0.0,
        }
    }

    fn weights_of(&self, block: usize) -> [f64; BLOCK] {
        let word = self.words.get(block).copied().unwrap_or(0);
        let logits = self.row.logits.get(block * BLOCK..).unwrap_or_default();
        let weights = block_weights(&logits[..logits.len().min(BLOCK)], self.peak, self.row.scale);
        std::array::from_fn(|bit| if word & BITS[bit] != 0 { weights[bit] } else { 0.0 })
    }
}

impl Part<f64> for Portion<'_> {
    fn mass(&self) -> f64 {
        self.log_mass.exp()
    }

    fn log_mass(&self) -> f64 {
        self.log_mass
    }

    fn log_kept(&self) -> f64 {
        self.log_kept
    }

    fn share(&self, token: u32) -> f64 {
        if self.sums.total > 0.0 {
            self.weight(token) / self.sums.total
        } else {
            0.0
        }
    }

    fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.row.logits.len()];
        let blocks = shares.chunks_mut(BLOCK).zip(&self.words).enumerate();
        for (block, (shares, _)) in blocks.filter(|(_, (_, word))| **word != 0) {
            for (share, weight) in shares.iter_mut().zip(self.weights_of(block)) {
                *share = if self.sums.total > 0.0 {
                    weight / self.sums.total
                } else {
                    0.0
                };
            }
        }
        shares
    }

    fn share_without(&self, token: u32) -> f64 {
        let own = token as usize / BLOCK;
        let others = self.sums.without(own);
        let weights = self.weights_of(own);
        let inside = weights
            .iter()
            .enumerate()
            .filter(|&(bit, _)| bit != token as usize % BLOCK);
        (others + inside.map(|(_, weight)| weight).sum::<f64>()) / self.sums.total
    }

    fn draw<C: Chooser<f64> + ?Sized>(&self, place: Place, chooser: &mut C) -> Option<u32> {
        if self.sums.total <= 0.0 {
            return None;
        }
        let block = self.sums.choose(place, chooser);
        let weights = self.weights_of(block);
        Some((block * BLOCK + chooser.choose(place, &weights)) as u32)
    }
}

/// Returns `exp(scale · (logit − peak))` for a block; zero past the end of a short one.
fn block_weights(block: &[f32], peak: f32, scale: f64) -> [f64; BLOCK] {
    let mut weights = [0.0; BLOCK];
    for (weight, &logit) in weights.iter_mut().zip(block) {
        *weight = exp((f64::from(logit) - f64::from(peak)) * scale);
    }
    weights
}

/// Returns the sum of the weights whose bit is set, in order. Unless they are few, all weights are computed,
/// because the compiler can vectorise that.
fn block_sum(block: &[f32], word: u32, peak: f32, scale: f64) -> f64 {
    if word.count_ones() <= FEW_TOKENS {
        let kept = block.iter().zip(BITS).filter(|(_, bit)| word & bit != 0);
        return kept
            .map(|(&logit, _)| exp((f64::from(logit) - f64::from(peak)) * scale))
            .sum();
    }
    let weights = block_weights(block, peak, scale);
    weights
        .iter()
        .zip(BITS)
        .map(|(&weight, bit)| if word & bit != 0 { weight } else { 0.0 })
        .sum()
}

/// Returns the largest logit of a block among these bits, minus infinity if there is none. NaN is skipped.
fn block_peak(block: &[f32], word: u32) -> f32 {
    let mut kept = [f32::NEG_INFINITY; BLOCK];
    for ((kept, &logit), bit) in kept.iter_mut().zip(block).zip(BITS) {
        // Written without a branch, which would be mispredicted half of the time; a comparison with NaN is
        // false.
        let is_kept = (word & bit != 0) & (logit > f32::NEG_INFINITY);
        *kept = if is_kept { logit } else { f32::NEG_INFINITY };
    }
    // Compares halves with halves, because in sequence each comparison would wait for the one before it.
    let mut half = BLOCK / 2;
    while half > 0 {
        for at in 0..half {
            let (one, other) = (kept[at], kept[at + half]);
            kept[at] = if other > one { other } else { one };
        }
        half /= 2;
    }
    kept[0]
}

/// Returns the largest logit in these words.
fn peak_of(logits: &[f32], words: &[u32]) -> f32 {
    let peaks = logits.chunks(BLOCK).zip(words).map(|(block, &word)| match word {
        0 => f32::NEG_INFINITY,
        word => block_peak(block, word),
    });
    peaks.fold(f32::NEG_INFINITY, f32::max)
}
