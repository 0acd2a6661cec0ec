//! Token samplers for constraints without a mask: adaptive weighted rejection.
//!
//! A constraint that can only be asked "is this token allowed?" (a type checker, a database) makes a mask too
//! dear. These samplers draw tokens without replacement, ask about each, and return an allowed one with a
//! *weight* whose expectation is right:
//!
//! ```text
//!   E[weight · 1{token = x}] = p(x) · 1_A(x)        so E[weight] = m(u)
//! ```
//!
//! The weight stands where a masked sampler has `m(u)`: the product over a sequence is its importance weight.
//! [`asked`] is the sampler for all of them: inside a mask that is known, and with the numbers of a draw.
//! [`recursive`] usually asks once more than [`adaptive`] and varies far less. An extension of `adaptive` by
//! more loops with the weight scaled by their number looks natural and is biased; a test keeps that on
//! record.

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

/// A row that tokens are drawn from without replacement.
struct Urn<'a, R> {
    row: &'a R,
    words: Vec<u32>,
    place: Place,
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
        }
    }

    /// A token of those left, which is taken out; `None` when none has mass.
    fn take<W, C>(&mut self, chooser: &mut C) -> Option<u32>
    where
        W: Weight,
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let token = self
            .row
            .part(Allowed::Words(&self.words))
            .draw(self.place, chooser)?;
        self.place.round += 1;
        self.remove(token);
        Some(token)
    }

    /// Leaves only tokens of a mask, if there is one.
    fn narrow(&mut self, ask: &mut (impl Ask + ?Sized)) {
        if let Some(mask) = ask.narrow() {
            let of = mask.into_iter().chain(std::iter::repeat(0));
            self.words.iter_mut().zip(of).for_each(|(word, of)| *word &= of);
        }
    }

    /// A token of those left, its share of them, and the share of all others; `None` when none has mass.
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
    /// Whether this token is allowed.
    fn allows(&mut self, token: u32) -> bool;

    /// A mask that has every allowed token, and others at will, asked for after each rejection. It ends a
    /// search among many tokens that are not allowed, where the mask takes less than asking about them.
    fn narrow(&mut self) -> Option<Vec<u32>> {
        None
    }
}

impl<F: FnMut(u32) -> bool> Ask for F {
    fn allows(&mut self, token: u32) -> bool {
        self(token)
    }
}

/// Draws from the part of a row that is in a mask *and* allowed, by asking: tokens are drawn without
/// replacement until one is allowed, and one more is looked at for the weight.
///
/// The token has the law of the row inside both, exactly. The first draw is that of the mask at this place,
/// so where the model rarely draws what is not allowed, two tokens are asked about, and a draft that was
/// verified by drawing once stays verified. Drawing without replacement is what a walk down a row does that
/// was perturbed once with Gumbel noise (Kool et al. 2019, arXiv 1903.06059); here the noise of tokens that
/// nobody comes to is never drawn.
///
/// [`Drawn::mass`] is an unbiased estimate of the mass of what is allowed, as for [`recursive`]: with `S` the
/// mask without the tokens rejected before, it is `p(S)` if the token looked at is allowed too, and
/// `p(token)` if not. [`Ask::narrow`] may shrink `S` after any rejection, by what has been seen so far, and
/// changes neither the law nor the mean.
///
/// Under a filter that cuts each masked row, the tokens drawn from are those that it leaves of `S`; the
/// numbers are of `S` before the filter.
///
/// `None` if nothing with probability is allowed. Asks about every token at most once.
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
        let token = urn.take::<W, C>(chooser)?;
        if !ask.allows(token) {
            urn.narrow(ask);
            continue;
        }
        let next = urn.take::<W, C>(chooser);
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

/// Recursive adaptive weighted rejection: draws until a token is allowed, then looks at one more. `None` if
/// no token with probability is allowed, which stands for weight zero. Asks about at most every token once.
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

/// Adaptive weighted rejection (Lipkin and others, 2025): one loop finds the token, a second one, in which
/// the rejected tokens stay out and the accepted one takes part, estimates the mass from the number of
/// rejections.
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
                // Only what the first loop rejected is taken off; the second only counts.
                left = if found.is_none() { left * others } else { left };
            }
        }
    }
}
