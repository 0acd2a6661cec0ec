//! Token samplers for constraints without a mask: adaptive weighted rejection.
//!
//! A constraint that can only be asked "is this token allowed?" (a type checker, a database) makes a mask too dear. These
//! samplers draw tokens without replacement, ask about each, and return an allowed one with a *weight* whose expectation
//! is right:
//!
//! ```text
//!   E[weight · 1{token = x}] = p(x) · 1_A(x)        so E[weight] = m(u)
//! ```
//!
//! The weight stands where a masked sampler has `m(u)`: the product over a sequence is its importance weight.
//! [`recursive`] usually asks once more than [`adaptive`] and varies far less. An extension of `adaptive` by more loops
//! with the weight scaled by their number looks natural and is biased; a test keeps that on record.

use super::row::remove;
use super::{Allowed, Chooser, Part, Place, Row, Weight};

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
    fn new<W: Weight>(row: &'a R, place: Place) -> Self
    where
        R: Row<W>,
    {
        Urn {
            row,
            words: Allowed::All.to_words(row.len()).into_owned(),
            place,
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

/// Recursive adaptive weighted rejection: draws until a token is allowed, then looks at one more. `None` if no token with
/// probability is allowed, which stands for weight zero. Asks about at most every token once.
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
    let mut urn = Urn::new(row, place);
    let mut weight = W::one();
    loop {
        let (token, share, others): (u32, W, W) = urn.draw(chooser)?;
        urn.remove(token);
        if !allows(token) {
            weight = weight * others;
            continue;
        }
        let next: Option<(u32, W, W)> = urn.draw(chooser);
        let rejected = next.is_some_and(|(next, _, _)| !allows(next));
        return Some(Weighted {
            token,
            weight: if rejected { weight * share } else { weight },
        });
    }
}

/// Adaptive weighted rejection (Lipkin and others, 2025): one loop finds the token, a second one, in which the rejected
/// tokens stay out and the accepted one takes part, estimates the mass from the number of rejections.
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
    let mut urn = Urn::new(row, place);
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
