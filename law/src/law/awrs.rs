//! Token samplers for constraints without a mask: adaptive weighted rejection.
//!
//! A constraint that can only answer "is this token allowed?" (a type checker, a database) makes a mask too
//! expensive. These samplers draw tokens without replacement, check each, and return an allowed one with a
//! *weight* whose expectation is right:
//!
//! ```text
//!   E[weight · 1{token = x}] = p(x) · 1_A(x)        so E[weight] = m(u)
//! ```
//!
//! The weight takes the role of a masked sampler's `m(u)`: its product over a sequence is the importance
//! weight of the sequence. [`asked`] is the sampler for all such constraints: it draws inside a known mask,
//! with the random numbers of a masked draw. [`recursive`] usually checks one token more than [`adaptive`]
//! and has far less variance. An extension of `adaptive` by more loops with the weight scaled by their number
//! looks natural and is biased; a test keeps that on record.

use std::collections::VecDeque;

use super::row::remove;
use super::{Allowed, Chooser, Drawn, Part, Place, Row, Weight};

/// A token with its weight.
#[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord)]
pub struct Weighted<W> {
    /// An allowed token.
    pub token: u32,
    /// An unbiased estimate of the allowed mass; see the module.
    pub weight: W,
}

/// A row from which tokens are drawn without replacement.
struct Urn<'a, R> {
    row: &'a R,
    words: Vec<u32>,
    place: Place,
    /// The tokens that come next, drawn before they are needed.
    ahead: VecDeque<u32>,
}

impl<'a, R> Urn<'a, R> {
    fn new<W: Weight>(row: &'a R, allowed: Allowed<'_>, place: Place) -> Self
    where
        R: Row<W>,
    {
        Urn {
            row,
            words: allowed.to_words(row.len()).into_owned(),
            place,
            ahead: VecDeque::new(),
        }
    }

    /// Draws one of the remaining tokens and removes it; `None` if none of them has mass.
    fn take<W, C>(&mut self, ask: &mut (impl Ask + ?Sized), chooser: &mut C) -> Option<u32>
    where
        W: Weight,
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        if self.ahead.is_empty() {
            self.draw_ahead(ask.ahead(), chooser);
            if self.ahead.len() > 1 {
                ask.prepare(self.ahead.make_contiguous());
            }
        }
        let token = self.ahead.pop_front()?;
        self.place.round += 1;
        self.remove(token);
        Some(token)
    }

    /// Draws the tokens that come next: `count` of them, at least one, as far as tokens with mass are left.
    fn draw_ahead<W, C>(&mut self, count: usize, chooser: &mut C)
    where
        W: Weight,
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let (mut words, mut place) = (self.words.clone(), self.place);
        while self.ahead.len() < count.max(1) {
            let token = self.row.part(Allowed::Words(&words)).draw(place, chooser);
            let Some(token) = token else {
                return;
            };
            place.round += 1;
            self.ahead.push_back(token);
            remove(&mut words, token);
        }
    }

    /// Removes the tokens outside the mask of `ask`, if it has one. What was drawn ahead is drawn anew.
    fn narrow(&mut self, ask: &mut (impl Ask + ?Sized)) {
        if let Some(mask) = ask.narrow() {
            let of = mask.into_iter().chain(std::iter::repeat(0));
            self.words.iter_mut().zip(of).for_each(|(word, of)| *word &= of);
            self.ahead.clear();
        }
    }

    /// Draws one of the remaining tokens. Returns it, its share of their mass, and the share of all others;
    /// `None` if none of them has mass.
    fn draw<W, C>(&mut self, chooser: &mut C) -> Option<(u32, W, W)>
    where
        W: Weight,
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let part = self.row.part(Allowed::Words(&self.words));
        let token = part.draw(self.place, chooser)?;
        self.place.round += 1;
        Some((token, part.share(token), part.share_without(token)))
    }

    fn remove(&mut self, token: u32) {
        remove(&mut self.words, token);
    }
}

/// Answers whether a token may come next, one token at a time.
pub trait Ask {
    /// Returns `true` if this token is allowed.
    fn allows(&mut self, token: u32) -> bool;

    /// Returns a mask that contains every allowed token, and possibly others. It is called after each
    /// rejection. It ends a search among many tokens that are not allowed, where computing the mask takes
    /// less time than checking them.
    fn narrow(&mut self) -> Option<Vec<u32>> {
        None
    }

    /// Returns how many tokens should be drawn before the first of them is checked. They are the ones that
    /// would be drawn anyway if all of them were refused.
    fn ahead(&mut self) -> usize {
        1
    }

    /// Announces tokens that were drawn ahead, of which the first will be checked, and others as far as they
    /// are needed.
    fn prepare(&mut self, _tokens: &[u32]) {}
}

impl<F: FnMut(u32) -> bool> Ask for F {
    fn allows(&mut self, token: u32) -> bool {
        self(token)
    }
}

/// Draws from the part of a row that is in a mask *and* allowed, by checking: tokens are drawn without
/// replacement until one is allowed, and one more is checked for the weight.
///
/// The token has exactly the law of the row restricted to both. The first draw is the masked draw at this
/// place, so where the model rarely draws tokens that are not allowed, two tokens are checked, and a draft
/// that was verified by drawing once stays verified. Drawing without replacement corresponds to a walk down a
/// row that was perturbed once with Gumbel noise (Kool et al. 2019, arXiv 1903.06059); here the noise of
/// tokens that are never reached is never drawn.
///
/// [`Drawn::mass`] is an unbiased estimate of the allowed mass, as for [`recursive`]: with `S` the mask
/// without the tokens rejected before, it is `p(S)` if the extra token is allowed too, and `p(token)` if not.
/// [`Ask::narrow`] may shrink `S` after any rejection, depending on the tokens seen so far, and changes
/// neither the law nor the mean.
///
/// Under a filter that cuts each masked row, tokens are drawn from what the filter keeps of `S`; the numbers
/// are computed from `S` before the filter.
///
/// Returns `None` if no token with probability is allowed. Checks every token at most once.
pub fn asked<W, R, C>(
    row: &R,
    allowed: Allowed<'_>,
    ask: &mut (impl Ask + ?Sized),
    place: Place,
    chooser: &mut C,
) -> Option<Drawn<W>>
where
    W: Weight,
    R: Row<W>,
    C: Chooser<W> + ?Sized,
{
    let mut urn = Urn::new(row, allowed, place);
    loop {
        let before = urn.words.clone();
        let token = urn.take::<W, C>(ask, chooser)?;
        if !ask.allows(token) {
            urn.narrow(ask);
            continue;
        }
        let next = urn.take::<W, C>(ask, chooser);
        let rejected = next.is_some_and(|next| !ask.allows(next));
        let log_probability = row.log_probability(token);
        let (mass, log_mass) = match rejected {
            true => (row.probability(token), log_probability),
            false => {
                let part = row.part(Allowed::Words(&before));
                (part.mass(), part.log_mass())
            }
        };
        return Some(Drawn {
            token,
            mass,
            log_mass,
            log_probability,
            log_kept: log_mass,
        });
    }
}

/// Recursive adaptive weighted rejection: draws until a token is allowed, then checks one more. Returns
/// `None`, which means weight zero, if no token with probability is allowed. Checks every token at most once.
pub fn recursive<W, R, C>(
    row: &R,
    mut allows: impl FnMut(u32) -> bool,
    place: Place,
    chooser: &mut C,
) -> Option<Weighted<W>>
where
    W: Weight,
    R: Row<W>,
    C: Chooser<W> + ?Sized,
{
    let Drawn { token, mass, .. } = asked(row, Allowed::All, &mut allows, place, chooser)?;
    Some(Weighted { token, weight: mass })
}

/// Adaptive weighted rejection (Lipkin and others, 2025): one loop finds the token; a second one, which
/// leaves out the rejected tokens but not the accepted one, estimates the mass from the number of rejections.
pub fn adaptive<W, R, C>(
    row: &R,
    mut allows: impl FnMut(u32) -> bool,
    place: Place,
    chooser: &mut C,
) -> Option<Weighted<W>>
where
    W: Weight,
    R: Row<W>,
    C: Chooser<W> + ?Sized,
{
    let mut urn = Urn::new(row, Allowed::All, place);
    let mut left = W::one();
    let mut trials = W::one();
    let mut found = None;
    loop {
        let (token, _, others): (u32, W, W) = urn.draw(chooser)?;
        match (allows(token), found) {
            (true, None) => found = Some(token),
            (true, Some(token)) => {
                return Some(Weighted {
                    token,
                    weight: left / trials,
                });
            }
            (false, _) => {
                urn.remove(token);
                trials = trials + W::one();
                // Only the rejections of the first loop reduce the mass; the second loop only counts.
                left = if found.is_none() { left * others } else { left };
            }
        }
    }
}
