//! A row of logits as a law: sums by block, so that a draw looks at few tokens.
//!
//! ```text
//!   logits   │ 32 tokens │ 32 tokens │ 32 tokens │ …     one pass finds the peak, one the sum of every block
//!   mask     │ all       │ none      │ some bits │ …     whole blocks take the sum of the row, empty ones cost nothing
//!   sums     │ 0.31      │ 0         │ 0.02      │ …     a draw chooses a block by these, then a token inside it
//! ```
//!
//! Sums are kept relative to a peak, in `f64`. A mask that leaves only tokens hundreds of nats below the peak of the row
//! is measured again relative to its own peak, so a law is right however unlikely its tokens were.

use std::borrow::Cow;

use super::exp::exp;
use super::filter::Filter;
use super::row::Allowed;
use super::{Chooser, Part, Place, Purpose, Row};

const BLOCK: usize = 32;
/// A masked sum below this has lost digits to the bottom of the number range and is taken again.
const LEAST_SUM: f64 = 1e-200;

/// Why a row of logits is no law.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum RowError {
    /// The model computed something that is not a number, or infinity.
    #[error("the logit of token {token} is {value}")]
    NotFinite {
        /// The first such token.
        token: usize,
        /// Its logit.
        value: f32,
    },
    /// Every logit is minus infinity, or there is none.
    #[error("no token has a finite logit")]
    Empty,
}

/// Where the filters cut.
#[derive(Clone, Debug)]
pub(super) enum Cut {
    /// Nowhere.
    Nothing,
    /// Each masked row is cut; the row itself is whole.
    Masked(Filter),
    /// The row itself was cut to these tokens, sorted by id.
    Row(Vec<u32>),
}

/// The law of the next token from logits; see [`Warper::row`](super::Warper::row).
#[derive(Clone, Debug)]
pub struct Distribution<'a> {
    logits: Cow<'a, [f32]>,
    scale: f64,
    peak: f32,
    sums: Vec<f64>,
    total: f64,
    cut: Cut,
}

impl<'a> Distribution<'a> {
    /// The law of these logits as they are: temperature 1, nothing cut.
    pub fn new(logits: &'a [f32]) -> Result<Self, RowError> {
        Self::scaled(Cow::Borrowed(logits), 1.0)
    }

    pub(super) fn scaled(logits: Cow<'a, [f32]>, scale: f64) -> Result<Self, RowError> {
        let peak = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sums: Vec<f64> = logits
            .chunks(BLOCK)
            .map(|block| weights(block, peak, scale).iter().sum())
            .collect();
        let total: f64 = sums.iter().sum();
        if peak == f32::NEG_INFINITY || !total.is_finite() {
            return Err(fault(&logits));
        }
        Ok(Distribution {
            logits,
            scale,
            peak,
            sums,
            total,
            cut: Cut::Nothing,
        })
    }

    /// The same row, with each masked row cut by the filter.
    pub(super) fn cut_masked(self, filter: Filter) -> Self {
        Distribution {
            cut: Cut::Masked(filter),
            ..self
        }
    }

    /// The row cut by the filter, and renormalised.
    pub(super) fn cut_row(mut self, filter: Filter) -> Self {
        let kept = filter.keep(candidates(&self.logits, Allowed::All), self.scale);
        let words = words_of(&kept, self.logits.len());
        self.sums = self.block_sums(Allowed::Words(&words), self.peak);
        self.total = self.sums.iter().sum();
        self.cut = Cut::Row(kept);
        self
    }

    /// The same row, owning its logits.
    pub fn into_owned(self) -> Distribution<'static> {
        Distribution {
            logits: Cow::Owned(self.logits.into_owned()),
            ..self
        }
    }

    /// The most likely tokens with their log probabilities, at most `count`, best first.
    pub fn top(&self, count: usize) -> Vec<(u32, f64)> {
        let mut best: Vec<(f32, u32)> = Vec::with_capacity(count + 1);
        for (token, &logit) in self.logits.iter().enumerate() {
            let full = best.len() == count;
            if count == 0
                || (full && best.last().is_some_and(|last| logit <= last.0))
                || !self.has(token as u32)
            {
                continue;
            }
            let at = best.partition_point(|other| other.0 >= logit);
            best.insert(at, (logit, token as u32));
            best.truncate(count);
        }
        best.into_iter()
            .map(|(_, token)| (token, self.log_probability(token)))
            .collect()
    }

    fn has(&self, token: u32) -> bool {
        match &self.cut {
            Cut::Row(kept) => kept.binary_search(&token).is_ok(),
            _ => (token as usize) < self.logits.len(),
        }
    }

    /// Σ exp(scale · (logit − peak)) over the allowed tokens of each block.
    fn block_sums(&self, allowed: Allowed<'_>, peak: f32) -> Vec<f64> {
        let Allowed::Words(words) = allowed else {
            return self.sums.clone();
        };
        let same_peak = peak == self.peak;
        let blocks = self.logits.chunks(BLOCK).zip(words).zip(&self.sums);
        let sum = |((block, &word), &whole): ((&[f32], &u32), &f64)| match word {
            0 => 0.0,
            u32::MAX if same_peak => whole,
            _ => bits(word, block.len())
                .map(|bit| self.weight(block[bit], peak))
                .sum(),
        };
        blocks.map(sum).collect()
    }

    fn weight(&self, logit: f32, peak: f32) -> f64 {
        exp((f64::from(logit) - f64::from(peak)) * self.scale)
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
        (f64::from(self.logits[token as usize]) - f64::from(self.peak)) * self.scale - self.total.ln()
    }

    fn part<'b>(&'b self, allowed: Allowed<'b>) -> Portion<'b> {
        match &self.cut {
            Cut::Nothing => Portion::measure(self, allowed.to_words(self.len())),
            Cut::Row(kept) => {
                let kept: Vec<u32> = kept
                    .iter()
                    .copied()
                    .filter(|&token| allowed.contains(token))
                    .collect();
                Portion::measure(self, Cow::Owned(words_of(&kept, self.len())))
            }
            Cut::Masked(filter) => {
                let whole = Portion::measure(self, allowed.to_words(self.len()));
                let kept = filter.keep(candidates(&self.logits, allowed), self.scale);
                let log_mass = whole.log_mass;
                Portion {
                    log_mass,
                    ..Portion::measure(self, Cow::Owned(words_of(&kept, self.len())))
                }
            }
        }
    }
}

/// The part of a [`Distribution`] inside a mask.
#[derive(Clone, Debug)]
pub struct Portion<'a> {
    row: &'a Distribution<'a>,
    words: Cow<'a, [u32]>,
    peak: f32,
    sums: Vec<f64>,
    sum: f64,
    log_mass: f64,
    log_kept: f64,
}

impl<'a> Portion<'a> {
    fn measure(row: &'a Distribution<'a>, words: Cow<'a, [u32]>) -> Self {
        let mut peak = row.peak;
        let mut sums = row.block_sums(Allowed::Words(&words), peak);
        let mut sum: f64 = sums.iter().sum();
        if sum < LEAST_SUM {
            let allowed = candidates(&row.logits, Allowed::Words(&words));
            if let Some(own) = allowed.iter().map(|candidate| candidate.0).max_by(f32::total_cmp) {
                peak = own;
                sums = row.block_sums(Allowed::Words(&words), peak);
                sum = sums.iter().sum();
            }
        }
        let log_kept = (f64::from(peak) - f64::from(row.peak)) * row.scale + sum.ln() - row.total.ln();
        Portion {
            row,
            words,
            peak,
            sums,
            sum,
            log_mass: log_kept,
            log_kept,
        }
    }

    fn weight(&self, token: u32) -> f64 {
        match self.row.logits.get(token as usize) {
            Some(&logit) if Allowed::Words(&self.words).contains(token) => self.row.weight(logit, self.peak),
            _ => 0.0,
        }
    }

    fn block_weights(&self, block: usize) -> [f64; BLOCK] {
        std::array::from_fn(|bit| self.weight((block * BLOCK + bit) as u32))
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
        if self.sum > 0.0 {
            self.weight(token) / self.sum
        } else {
            0.0
        }
    }

    fn share_without(&self, token: u32) -> f64 {
        let own = token as usize / BLOCK;
        let others: f64 = self
            .sums
            .iter()
            .enumerate()
            .filter(|&(block, _)| block != own)
            .map(|(_, sum)| sum)
            .sum();
        let weights = self.block_weights(own);
        let inside = weights
            .iter()
            .enumerate()
            .filter(|&(bit, _)| bit != token as usize % BLOCK);
        (others + inside.map(|(_, weight)| weight).sum::<f64>()) / self.sum
    }

    fn draw<C: Chooser<f64> + ?Sized>(&self, place: Place, chooser: &mut C) -> Option<u32> {
        if self.sum <= 0.0 {
            return None;
        }
        let block = if self.sums.len() == 1 {
            0
        } else {
            chooser.choose(place.to(Purpose::Block), &self.sums)
        };
        let weights = self.block_weights(block);
        Some((block * BLOCK + chooser.choose(place, &weights)) as u32)
    }
}

/// exp(scale · (logit − peak)) for a block; zero past the end of a short one.
fn weights(block: &[f32], peak: f32, scale: f64) -> [f64; BLOCK] {
    let mut weights = [0.0; BLOCK];
    for (weight, &logit) in weights.iter_mut().zip(block) {
        *weight = exp((f64::from(logit) - f64::from(peak)) * scale);
    }
    weights
}

/// The positions of the bits of a word below `len`.
fn bits(word: u32, len: usize) -> impl Iterator<Item = usize> {
    (0..len.min(BLOCK)).filter(move |bit| word >> bit & 1 == 1)
}

fn candidates(logits: &[f32], allowed: Allowed<'_>) -> Vec<(f32, u32)> {
    let possible = |&(logit, token): &(f32, u32)| logit > f32::NEG_INFINITY && allowed.contains(token);
    logits.iter().copied().zip(0..).filter(possible).collect()
}

fn words_of(tokens: &[u32], len: usize) -> Vec<u32> {
    let mut words = vec![0; len.div_ceil(BLOCK)];
    for &token in tokens {
        words[token as usize / BLOCK] |= 1 << (token % BLOCK as u32);
    }
    words
}

fn fault(logits: &[f32]) -> RowError {
    match logits
        .iter()
        .position(|logit| logit.is_nan() || *logit == f32::INFINITY)
    {
        Some(token) => RowError::NotFinite {
            token,
            value: logits[token],
        },
        None => RowError::Empty,
    }
}
