//! From the model's logits to the law `p` that is sampled.
//!
//! The order is fixed:
//!
//! 1. the repetition penalty, once for every token of the prompt or the answer;
//! 2. the frequency and presence penalties, for the tokens of the answer;
//! 3. the logit bias;
//! 4. the temperature;
//! 5. top-k, then top-p of what is left, then min-p: before the mask under the global law, after it under the local
//!    one (the reason is in the documentation of [`law`](crate::law)).
//!
//! All of it depends on the tokens so far and on nothing else, so `p(·|u)` is a law of the prefix `u` and the sequence
//! laws are well defined.

use std::borrow::Cow;
use std::collections::HashMap;

use super::filter::Filter;
use super::{Allowed, Distribution, Law, LawError, Measured, RowError};

/// How the model's rows are changed before they are sampled. The default changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Warping {
    /// Divides the logits; 0 takes the most likely token.
    pub temperature: f32,
    /// Keeps this number of the most likely tokens; `None` keeps all.
    pub top_k: Option<u32>,
    /// Keeps the fewest tokens that together are at least this likely; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this likely, where the most likely one counts as 1; 0 keeps all.
    pub min_p: f32,
    /// Divides the positive logits of tokens seen before and multiplies the negative ones; 1 changes nothing.
    pub repetition_penalty: f32,
    /// Subtracted from a logit for each time that the token stands in the answer.
    pub frequency_penalty: f32,
    /// Subtracted once from the logit of each token that stands in the answer.
    pub presence_penalty: f32,
    /// Added to the logits of these tokens; minus infinity forbids one. Entries for one token add up.
    pub bias: Vec<(u32, f32)>,
}

impl Default for Warping {
    fn default() -> Self {
        Warping {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            bias: Vec::new(),
        }
    }
}

/// The tokens before a row, in the pieces in which a decode loop has them.
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

/// A checked [`Warping`], with the place of its filters settled by the law.
#[derive(Clone, Debug)]
pub struct Warper {
    warping: Warping,
    filter: Filter,
    before_mask: bool,
    tokens: Option<Vec<u32>>,
}

impl Warper {
    /// Checks the parameters. The law decides whether the filters cut before the mask (global) or after it (local).
    pub fn new(warping: Warping, law: Law) -> Result<Self, LawError> {
        check(&warping)?;
        let before_mask = law != Law::Local;
        if before_mask && warping.temperature == 0.0 {
            return Err(LawError::GreedyGlobal);
        }
        let filter = match warping.temperature {
            0.0 => Filter {
                top_k: Some(1),
                ..Filter::NONE
            },
            _ => Filter {
                top_k: warping.top_k.map(|k| k as usize),
                top_p: f64::from(warping.top_p),
                min_p: f64::from(warping.min_p),
            },
        };
        Ok(Warper {
            warping,
            filter,
            before_mask,
            tokens: None,
        })
    }

    /// The same, with rows among these tokens only (packed words): a model may have more logits than its vocabulary has
    /// tokens, and those count as if they were not there.
    pub fn among(self, tokens: Vec<u32>) -> Self {
        Warper {
            tokens: Some(tokens),
            ..self
        }
    }

    /// The parameters.
    pub fn warping(&self) -> &Warping {
        &self.warping
    }

    /// Whether the most likely token is taken.
    pub fn is_greedy(&self) -> bool {
        self.warping.temperature == 0.0
    }

    /// Whether top-k, top-p or min-p cut anything.
    pub fn is_filtered(&self) -> bool {
        self.filter != Filter::NONE
    }

    /// Whether the rows give every token the probability that the model itself gives it. Filters that follow the mask, and
    /// greedy decoding among them, change what is drawn but not the row.
    pub fn is_identity(&self) -> bool {
        !self.changes_logits() && self.scale() == 1.0 && !(self.is_filtered() && self.before_mask)
    }

    /// Whether the logits, the scale and the mask are all that a draw depends on: no penalty, no bias, and no filter but
    /// that of greedy decoding.
    pub fn is_plain(&self) -> bool {
        !self.changes_logits() && self.tokens.is_none() && (self.is_greedy() || !self.is_filtered())
    }

    /// The law of the next token after `history`. A greedy row has the probabilities of temperature 1.
    pub fn row<'a>(&'a self, logits: &'a [f32], history: History<'_>) -> Result<Distribution<'a>, RowError> {
        self.row_of(logits, None, history)
    }

    /// The same, for logits that were measured where they were computed.
    pub fn row_of<'a>(
        &'a self,
        logits: &'a [f32],
        measured: Option<Measured<'_>>,
        history: History<'_>,
    ) -> Result<Distribution<'a>, RowError> {
        let measured = measured.filter(|measured| measured.scale == self.scale() && self.tokens.is_none());
        let mut logits = Cow::Borrowed(logits);
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
        Ok(match (self.is_filtered(), self.before_mask) {
            (false, _) => row,
            (true, true) => row.cut_row(self.filter),
            (true, false) => row.cut_masked(self.filter),
        })
    }

    /// What the logits are multiplied with: 1 over the temperature. A greedy row is told as that of temperature 1.
    pub fn scale(&self) -> f64 {
        if self.is_greedy() {
            1.0
        } else {
            1.0 / f64::from(self.warping.temperature)
        }
    }

    fn penalises(&self) -> bool {
        let Warping {
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
            ..
        } = self.warping;
        repetition_penalty != 1.0 || frequency_penalty != 0.0 || presence_penalty != 0.0
    }

    fn changes_logits(&self) -> bool {
        self.penalises() || !self.warping.bias.is_empty()
    }

    /// Applies penalties and bias; the tokens whose logits these may have changed.
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

fn check(warping: &Warping) -> Result<(), LawError> {
    let finite = |value: f32| value.is_finite();
    let checks: [(&'static str, f32, bool, &'static str); 7] = [
        (
            "temperature",
            warping.temperature,
            warping.temperature >= 0.0,
            "a number of at least 0",
        ),
        (
            "top_p",
            warping.top_p,
            warping.top_p > 0.0 && warping.top_p <= 1.0,
            "above 0 and at most 1",
        ),
        (
            "min_p",
            warping.min_p,
            (0.0..=1.0).contains(&warping.min_p),
            "between 0 and 1",
        ),
        (
            "repetition_penalty",
            warping.repetition_penalty,
            warping.repetition_penalty > 0.0,
            "a number above 0",
        ),
        ("frequency_penalty", warping.frequency_penalty, true, "a number"),
        ("presence_penalty", warping.presence_penalty, true, "a number"),
        (
            "top_k",
            warping.top_k.unwrap_or(1) as f32,
            warping.top_k != Some(0),
            "at least 1",
        ),
    ];
    for (name, value, in_range, expected) in checks {
        if !finite(value) || !in_range {
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
