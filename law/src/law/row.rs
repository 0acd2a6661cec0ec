//! Rows of next-token probabilities, and the part of one that a mask leaves.

mod sparse;

use std::borrow::Cow;

use super::cut::{self, Candidates, Scale};
use super::weight::sum;
use super::{Ceiling, Chooser, Place, Weight};

pub use sparse::{Sparse, SparsePart};

/// The tokens that may come next.
#[derive(Clone, Copy, Debug)]
pub enum Allowed<'a> {
    /// Every token of the row.
    All,
    /// Bit `t % 32` of word `t / 32`; tokens past the last word are not allowed.
    Words(&'a [u32]),
}

impl<'a> Allowed<'a> {
    /// Returns `true` if this token is allowed.
    pub fn contains(&self, token: u32) -> bool {
        match self {
            Allowed::All => true,
            Allowed::Words(words) => words
                .get(token as usize / 32)
                .is_some_and(|word| word >> (token % 32) & 1 == 1),
        }
    }

    /// Returns the words for a row of `len` tokens.
    pub fn to_words(&self, len: usize) -> Cow<'a, [u32]> {
        match self {
            Allowed::All => {
                let mut words = vec![!0; len.div_ceil(32)];
                if let Some(last) = words.last_mut().filter(|_| !len.is_multiple_of(32)) {
                    *last = (1 << (len % 32)) - 1;
                }
                Cow::Owned(words)
            }
            Allowed::Words(words) => Cow::Borrowed(words),
        }
    }

    /// Returns the words for a row of `len` tokens, without some tokens.
    pub fn without(&self, tokens: &[u32], len: usize) -> Vec<u32> {
        let mut words = self.to_words(len).into_owned();
        for &token in tokens {
            remove(&mut words, token);
        }
        words
    }
}

/// Clears the bit of a token.
pub(super) fn remove(words: &mut [u32], token: u32) {
    if let Some(word) = words.get_mut(token as usize / 32) {
        *word &= !(1 << (token % 32));
    }
}

/// A law over the next token.
pub trait Row<W: Weight> {
    /// The part of a row inside a mask.
    type Part<'a>: Part<W>
    where
        Self: 'a;

    /// Returns the number of tokens.
    fn len(&self) -> usize;

    /// Returns `true` if there is no token.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `p(token)`.
    fn probability(&self, token: u32) -> W;

    /// Returns `ln p(token)`, even if the probability itself is too small for the number type.
    fn log_probability(&self, token: u32) -> f64 {
        self.probability(token).ln()
    }

    /// Returns the part of the row inside `allowed`, measured once and ready to be drawn from.
    fn part<'a>(&'a self, allowed: Allowed<'a>) -> Self::Part<'a> {
        self.part_under(allowed, None)
    }

    /// Like [`part`](Self::part), without the tokens whose surprise is above the bound of
    /// [`Mirostat`](super::Mirostat) at this position.
    fn part_under<'a>(&'a self, allowed: Allowed<'a>, ceiling: Option<Ceiling>) -> Self::Part<'a>;
}

/// The part of a [`Row`] inside a mask (and inside the filters, where they follow the mask), as a separate
/// law.
pub trait Part<W: Weight> {
    /// Returns `m`: the probability of the mask under the row.
    fn mass(&self) -> W;

    /// Returns `ln m`, even if `m` is too small for the number type.
    fn log_mass(&self) -> f64 {
        self.mass().ln()
    }

    /// Returns the log of the row's probability of all tokens that can be drawn; differs from the mass where
    /// filters cut.
    fn log_kept(&self) -> f64 {
        self.log_mass()
    }

    /// Returns the probability of this token when the part is drawn from: `p / m`, or zero outside.
    fn share(&self, token: u32) -> W;

    /// Returns the share of every token of the row.
    fn shares(&self) -> Vec<W>;

    /// Returns the sum of the shares without this token, computed term by term rather than subtracted from
    /// one, so that it is accurate even if the token has nearly everything.
    fn share_without(&self, token: u32) -> W;

    /// Draws a token in proportion to its share; `None` if the part has no mass.
    fn draw<C: Chooser<W> + ?Sized>(&self, place: Place, chooser: &mut C) -> Option<u32>;
}

/// A row given as a table; for small models and for tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<W>(pub Vec<W>);

/// A part of a [`Table`].
#[derive(Clone, Debug)]
pub struct TablePart<W> {
    /// The weights of the tokens that can be drawn; zero for the others.
    weights: Vec<W>,
    /// The weight of the mask.
    mass: W,
    /// The weight of the tokens that can be drawn.
    kept: W,
}

impl<W: Weight> Row<W> for Table<W> {
    type Part<'a>
        = TablePart<W>
    where
        W: 'a;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn probability(&self, token: u32) -> W {
        self.0.get(token as usize).cloned().unwrap_or_else(W::zero)
    }

    fn part_under<'a>(&'a self, allowed: Allowed<'a>, ceiling: Option<Ceiling>) -> TablePart<W> {
        let keep = |token: usize| allowed.contains(token as u32);
        let weights: Vec<W> = (0..self.0.len())
            .map(|token| {
                if keep(token) {
                    self.0[token].clone()
                } else {
                    W::zero()
                }
            })
            .collect();
        let mass = sum(&weights);
        let part = TablePart {
            weights,
            kept: mass.clone(),
            mass,
        };
        match ceiling {
            Some(ceiling) => part.under(ceiling),
            None => part,
        }
    }
}

impl<W: Weight> TablePart<W> {
    /// Returns the part restricted to the tokens below a ceiling.
    fn under(mut self, ceiling: Ceiling) -> Self {
        let kept = under(ceiling, (0..).zip(&self.weights), &self.mass);
        for (token, weight) in (0..).zip(&mut self.weights) {
            if kept.binary_search(&token).is_err() {
                *weight = W::zero();
            }
        }
        TablePart {
            kept: sum(&self.weights),
            ..self
        }
    }
}

/// Returns the tokens below a ceiling, in ascending order. They are found in floating point; their weights do
/// not change.
fn under<'a, W: Weight + 'a>(
    ceiling: Ceiling,
    weights: impl Iterator<Item = (u32, &'a W)>,
    mass: &W,
) -> Vec<u32> {
    let listed: Vec<(f32, u32)> = weights
        .filter(|(_, weight)| weight.is_positive())
        .map(|(token, weight)| (weight.ln() as f32, token))
        .collect();
    let peak = listed
        .iter()
        .fold(f32::NEG_INFINITY, |peak, &(logit, _)| peak.max(logit));
    let scale = Scale { factor: 1.0, peak };
    let total = (mass.ln() - f64::from(peak)).exp();
    cut::keep(&[ceiling.cut()], Candidates::new(listed, scale, total))
}

impl<W: Weight> Part<W> for TablePart<W> {
    fn mass(&self) -> W {
        self.mass.clone()
    }

    fn log_kept(&self) -> f64 {
        self.kept.ln()
    }

    fn share(&self, token: u32) -> W {
        match self.weights.get(token as usize) {
            Some(weight) if weight.is_positive() => weight.clone() / self.kept.clone(),
            _ => W::zero(),
        }
    }

    fn shares(&self) -> Vec<W> {
        (0..)
            .take(self.weights.len())
            .map(|token| self.share(token))
            .collect()
    }

    fn share_without(&self, token: u32) -> W {
        let others = self
            .weights
            .iter()
            .enumerate()
            .filter(|&(index, _)| index != token as usize);
        sum(others.map(|(_, weight)| weight)) / self.kept.clone()
    }

    fn draw<C: Chooser<W> + ?Sized>(&self, place: Place, chooser: &mut C) -> Option<u32> {
        self.kept
            .is_positive()
            .then(|| chooser.choose(place, &self.weights) as u32)
    }
}
