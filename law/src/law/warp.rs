//! Turns the model's logits into the law `p` that is sampled.
//!
//! The order is fixed:
//!
//! 1. the repetition penalty, once for every token of the prompt or the answer;
//! 2. the frequency and presence penalties, for the tokens of the answer;
//! 3. the logit bias;
//! 4. the temperature;
//! 5. the filters, in the order of the table in [`law`](crate::law#filters-and-the-mask): before the mask
//!    under the global law, after it under the local one (the reason is there, too).
//!
//! A [`Contrastive`] row is computed from two rows before all this.
//!
//! All of this depends only on the tokens so far, so `p(·|u)` is a law of the prefix `u` and the sequence
//! laws are well defined.

mod contrast;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::cut::{Bregman, Cut, Epsilon, Eta, MinP, TopK, TopNSigma, TopP, Typical};
use super::{Allowed, Distribution, Law, LawError, Measured, Mirostat, RowError};

pub use contrast::{Contrast, Contrastive};

/// The changes to the model's rows before they are sampled. The default changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Warping {
    /// Divides the logits; 0 takes the most likely token.
    pub temperature: f32,
    /// Keeps the tokens whose logits are at most this number of standard deviations below the largest; `None`
    /// keeps all.
    pub top_n_sigma: Option<f32>,
    /// Keeps the `k` most likely tokens; `None` keeps all.
    pub top_k: Option<u32>,
    /// Keeps the fewest tokens of nearly the expected surprise that together are at least this likely; 1
    /// keeps all.
    pub typical_p: f32,
    /// Keeps the fewest tokens that together are at least this likely; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this likely, where the most likely one counts as 1; 0 keeps all.
    pub min_p: f32,
    /// Keeps tokens at least this likely; 0 keeps all.
    pub epsilon_cutoff: f32,
    /// Keeps tokens at least this likely, with a bound that falls where the entropy is large; 0 keeps all.
    pub eta_cutoff: f32,
    /// The cost `λ` of each token that Bregman top-k keeps; 0 keeps all.
    pub bregman_lambda: f32,
    /// Steers the surprise of the text, under the local law; `None` disables it.
    pub mirostat: Option<Mirostat>,
    /// Divides the positive logits of tokens seen before and multiplies the negative ones; 1 changes nothing.
    pub repetition_penalty: f32,
    /// Subtracted from the logit of a token for each of its occurrences in the answer.
    pub frequency_penalty: f32,
    /// Subtracted once from the logit of each token that occurs in the answer.
    pub presence_penalty: f32,
    /// Added to the logits of these tokens; minus infinity forbids one. Several entries for one token add up.
    pub bias: Vec<(u32, f32)>,
}

impl Default for Warping {
    fn default() -> Self {
        Warping {
            temperature: 1.0,
            top_n_sigma: None,
            top_k: None,
            typical_p: 1.0,
            top_p: 1.0,
            min_p: 0.0,
            epsilon_cutoff: 0.0,
            eta_cutoff: 0.0,
            bregman_lambda: 0.0,
            mirostat: None,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            bias: Vec::new(),
        }
    }
}

/// The tokens before a row, in separate pieces as a decode loop has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct History<'a> {
    /// The prompt.
    pub prompt: &'a [u32],
    /// The answer so far.
    pub answer: &'a [u32],
    /// Drafted tokens between the answer and this row.
    pub draft: &'a [u32],
}

impl History<'_> {
    fn answer(&self) -> impl Iterator<Item = u32> {
        self.answer.iter().chain(self.draft).copied()
    }
}

/// Filters that keep the most likely tokens of a masked row, in their order; see [`Warper::by_rank`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByRank {
    /// Keeps this number of tokens; `None` keeps all.
    pub top_k: Option<u32>,
    /// Keeps the fewest tokens that reach this share of what is left; 1 keeps all.
    pub top_p: f64,
    /// Keeps tokens at least this share as likely as the most likely one; 0 keeps all.
    pub min_p: f64,
}

impl ByRank {
    /// Returns `true` if all tokens are kept.
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for ByRank {
    fn default() -> Self {
        ByRank {
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
        }
    }
}

/// A checked [`Warping`], in which the law has decided whether the filters come before or after the mask.
#[derive(Clone, Debug)]
pub struct Warper {
    warping: Warping,
    cuts: Vec<Arc<dyn Cut>>,
    before_mask: bool,
    tokens: Option<Vec<u32>>,
    /// `true` if its rows are made of two, by [`Contrastive`] alone.
    is_contrast: bool,
}

impl Warper {
    /// Checks the parameters. The law decides whether the filters cut before the mask (global) or after it
    /// (local).
    pub fn new(warping: Warping, law: Law) -> Result<Self, LawError> {
        check(&warping)?;
        let before_mask = law.cuts_before_mask();
        if before_mask && warping.temperature == 0.0 {
            return Err(LawError::GreedyGlobal);
        }
        if before_mask && warping.mirostat.is_some() {
            return Err(LawError::MirostatGlobal);
        }
        Ok(Warper {
            cuts: cuts(&warping),
            warping,
            before_mask,
            tokens: None,
            is_contrast: false,
        })
    }

    /// Returns this warper with its rows restricted to these tokens (packed words): a model may have more
    /// logits than its vocabulary has tokens, and the excess logits are ignored.
    pub fn among(self, tokens: Vec<u32>) -> Self {
        Warper {
            tokens: Some(tokens),
            ..self
        }
    }

    /// Returns the parameters.
    pub fn warping(&self) -> &Warping {
        &self.warping
    }

    /// Returns `true` if the most likely token is taken.
    pub fn is_greedy(&self) -> bool {
        self.warping.temperature == 0.0
    }

    /// Returns `true` if a filter may cut anything.
    pub fn is_filtered(&self) -> bool {
        !self.cuts.is_empty() || self.is_contrast || self.mirostat().is_some()
    }

    /// Returns the names of the filters, in their order. A greedy law has none.
    pub fn filters(&self) -> Vec<&'static str> {
        let named = named_cuts(&self.warping).into_iter().map(|(name, _)| name);
        named.filter(|_| !self.is_greedy()).collect()
    }

    /// Returns `true` if the filters cut before the mask, so that they may leave no allowed token.
    pub fn cuts_before_mask(&self) -> bool {
        self.before_mask && !self.cuts.is_empty()
    }

    /// Returns this warper with filters that cut after the mask, as under the local law.
    #[must_use]
    pub fn after_mask(self) -> Self {
        Warper {
            before_mask: false,
            ..self
        }
    }

    /// Returns the parameters of Mirostat. A greedy text cannot be steered.
    pub fn mirostat(&self) -> Option<Mirostat> {
        self.warping.mirostat.filter(|_| !self.is_greedy())
    }

    /// Returns `true` if the rows give every token the probability that the model itself gives it. Filters
    /// that follow the mask, and greedy decoding among them, change what is drawn but not the row.
    pub fn is_identity(&self) -> bool {
        let is_cut = self.is_filtered() && self.before_mask;
        !self.changes_logits() && !self.is_contrast && self.scale() == 1.0 && !is_cut
    }

    /// Returns `true` if a draw depends on the logits, the scale and the mask alone: there is no penalty, no
    /// bias, and no filter except greedy decoding.
    pub fn is_plain(&self) -> bool {
        let is_row = !self.changes_logits() && !self.is_contrast && self.tokens.is_none();
        is_row && (self.is_greedy() || !self.is_filtered())
    }

    /// Returns the filters that cut the masked row, if all of them keep the most likely tokens up to some
    /// rank, and a draw depends on the logits, the history, the scale, the mask and these alone. A greedy law
    /// has none: the most likely token is taken.
    pub fn by_rank(&self) -> Option<ByRank> {
        let Warping {
            top_k, top_p, min_p, ..
        } = self.warping;
        if self.is_contrast || self.tokens.is_some() || self.mirostat().is_some() {
            return None;
        }
        if self.cuts.is_empty() || self.is_greedy() {
            return Some(ByRank::default());
        }
        // All other filters count as cuts that a rank does not describe, those that are added later, too.
        let ranked = [top_k.is_some(), top_p < 1.0, min_p > 0.0];
        let ranked = ranked.into_iter().filter(|is_set| *is_set).count();
        let is_ranked = ranked == self.cuts.len() && !self.before_mask;
        is_ranked.then(|| ByRank {
            top_k,
            top_p: f64::from(top_p),
            min_p: f64::from(min_p),
        })
    }

    /// Returns the law of the next token after `history`. A greedy row has the probabilities of temperature
    /// 1.
    pub fn row<'a>(&'a self, logits: &'a [f32], history: History<'_>) -> Result<Distribution<'a>, RowError> {
        self.row_of(logits, None, history)
    }

    /// Like [`row`](Self::row), for logits that were measured where they were computed.
    pub fn row_of<'a>(
        &'a self,
        logits: &'a [f32],
        measured: Option<Measured<'_>>,
        history: History<'_>,
    ) -> Result<Distribution<'a>, RowError> {
        self.row_cut(Cow::Borrowed(logits), measured, history, None)
    }

    /// Like [`row_of`](Self::row_of), with an additional cut before those of the warping.
    fn row_cut<'a>(
        &'a self,
        mut logits: Cow<'a, [f32]>,
        measured: Option<Measured<'_>>,
        history: History<'_>,
        first: Option<Arc<dyn Cut>>,
    ) -> Result<Distribution<'a>, RowError> {
        let measured = measured.filter(|measured| measured.scale == self.scale() && self.tokens.is_none());
        let changed = match self.changes_logits() {
            true => self.change(logits.to_mut(), history),
            false => Vec::new(),
        };
        let row = match measured {
            Some(measured) => Distribution::measured(logits, measured, &changed)?,
            None => {
                let tokens = self.tokens.as_deref().map_or(Allowed::All, Allowed::Words);
                Distribution::scaled(logits, self.scale(), tokens)?
            }
        };
        let mut cuts = Cow::Borrowed(&self.cuts[..]);
        if let Some(first) = first {
            cuts.to_mut().insert(0, first);
        }
        Ok(match (cuts.is_empty(), self.before_mask) {
            (true, _) => row,
            (false, true) => row.cut_row(&cuts),
            (false, false) => row.cut_masked(cuts),
        })
    }

    /// Returns the factor of the logits: 1 over the temperature. A greedy row has the factor of temperature
    /// 1.
    pub fn scale(&self) -> f64 {
        if self.is_greedy() {
            1.0
        } else {
            1.0 / f64::from(self.warping.temperature)
        }
    }

    /// Returns `true` if a row depends on the tokens before it.
    pub fn penalises(&self) -> bool {
        let Warping {
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
            ..
        } = self.warping;
        repetition_penalty != 1.0 || frequency_penalty != 0.0 || presence_penalty != 0.0
    }

    /// Returns `true` if logits are changed before they are weighed, by penalties or biases.
    pub fn changes_logits(&self) -> bool {
        self.penalises() || !self.warping.bias.is_empty()
    }

    /// Applies penalties and bias; returns the tokens whose logits may have changed.
    fn change(&self, logits: &mut [f32], history: History<'_>) -> Vec<u32> {
        let mut changed = match self.penalises() {
            true => self.penalise(logits, history),
            false => Vec::new(),
        };
        for &(token, bias) in &self.warping.bias {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit += bias;
                changed.push(token);
            }
        }
        changed
    }

    fn penalise(&self, logits: &mut [f32], history: History<'_>) -> Vec<u32> {
        let mut counts: HashMap<u32, u32> = history.prompt.iter().map(|&token| (token, 0)).collect();
        for token in history.answer() {
            *counts.entry(token).or_insert(0) += 1;
        }
        let Warping {
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
            ..
        } = self.warping;
        for (&token, &count) in &counts {
            let Some(logit) = logits.get_mut(token as usize) else {
                continue;
            };
            *logit = if *logit > 0.0 {
                *logit / repetition_penalty
            } else {
                *logit * repetition_penalty
            };
            if count > 0 {
                *logit -= frequency_penalty * count as f32 + presence_penalty;
            }
        }
        counts.into_keys().collect()
    }
}

/// Returns the filters of a warping, in their order. A greedy law is one that keeps one token.
fn cuts(warping: &Warping) -> Vec<Arc<dyn Cut>> {
    match warping.temperature == 0.0 {
        true => vec![Arc::new(TopK(1))],
        false => named_cuts(warping).into_iter().map(|(_, cut)| cut).collect(),
    }
}

/// Returns the filters that a warping sets, in their order, each with the name of its parameter.
fn named_cuts(warping: &Warping) -> Vec<(&'static str, Arc<dyn Cut>)> {
    fn some<C: Cut + 'static>(
        name: &'static str,
        is_some: bool,
        cut: C,
    ) -> Option<(&'static str, Arc<dyn Cut>)> {
        is_some.then(|| (name, Arc::new(cut) as Arc<dyn Cut>))
    }
    let sigmas = f64::from(warping.top_n_sigma.unwrap_or_default());
    let (typical, nucleus) = (f64::from(warping.typical_p), f64::from(warping.top_p));
    let (min_p, epsilon) = (f64::from(warping.min_p), f64::from(warping.epsilon_cutoff));
    let (eta, lambda) = (f64::from(warping.eta_cutoff), f64::from(warping.bregman_lambda));
    let top_k = warping.top_k.map_or(usize::MAX, |k| k as usize);
    let cuts = [
        some("top_n_sigma", warping.top_n_sigma.is_some(), TopNSigma(sigmas)),
        some("top_k", warping.top_k.is_some(), TopK(top_k)),
        some("typical_p", typical < 1.0, Typical(typical)),
        some("top_p", nucleus < 1.0, TopP(nucleus)),
        some("min_p", min_p > 0.0, MinP(min_p)),
        some("epsilon_cutoff", epsilon > 0.0, Epsilon(epsilon)),
        some("eta_cutoff", eta > 0.0, Eta(eta)),
        some("bregman_lambda", lambda > 0.0, Bregman(lambda)),
    ];
    cuts.into_iter().flatten().collect()
}

fn check(warping: &Warping) -> Result<(), LawError> {
    for (name, value, in_range, expected) in filters(warping).into_iter().chain(others(warping)) {
        if !value.is_finite() || !in_range {
            return Err(LawError::OutOfRange {
                name,
                value: f64::from(value),
                expected,
            });
        }
    }
    match warping
        .bias
        .iter()
        .find(|(_, bias)| bias.is_nan() || *bias == f32::INFINITY)
    {
        Some(&(_, bias)) => Err(LawError::OutOfRange {
            name: "bias",
            value: f64::from(bias),
            expected: "a number or minus infinity",
        }),
        None => Ok(()),
    }
}

/// A parameter, its value, whether it is in its range, and a description of the range.
type Check = (&'static str, f32, bool, &'static str);

fn filters(warping: &Warping) -> [Check; 10] {
    let share = |name, share: f32| (name, share, share > 0.0 && share <= 1.0, "above 0 and at most 1");
    let bound = |name, bound: f32| (name, bound, (0.0..=1.0).contains(&bound), "between 0 and 1");
    let above = |name, value: f32| (name, value, value > 0.0, "a number above 0");
    let top_k = warping.top_k.unwrap_or(1);
    let lambda = warping.bregman_lambda;
    let (tau, eta) = warping
        .mirostat
        .map_or((1.0, 1.0), |mirostat| (mirostat.tau, mirostat.eta));
    [
        above("top_n_sigma", warping.top_n_sigma.unwrap_or(1.0)),
        ("top_k", top_k as f32, top_k != 0, "at least 1"),
        share("typical_p", warping.typical_p),
        share("top_p", warping.top_p),
        bound("min_p", warping.min_p),
        bound("epsilon_cutoff", warping.epsilon_cutoff),
        bound("eta_cutoff", warping.eta_cutoff),
        ("bregman_lambda", lambda, lambda >= 0.0, "a number of at least 0"),
        above("mirostat_tau", tau),
        above("mirostat_eta", eta),
    ]
}

fn others(warping: &Warping) -> [Check; 4] {
    let Warping {
        temperature,
        repetition_penalty,
        ..
    } = *warping;
    [
        (
            "temperature",
            temperature,
            temperature >= 0.0,
            "a number of at least 0",
        ),
        (
            "repetition_penalty",
            repetition_penalty,
            repetition_penalty > 0.0,
            "a number above 0",
        ),
        ("frequency_penalty", warping.frequency_penalty, true, "a number"),
        ("presence_penalty", warping.presence_penalty, true, "a number"),
    ]
}
