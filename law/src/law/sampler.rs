//! The interface of samplers: from a row and a mask to the next step of a sequence.

use super::{Allowed, Chooser, LawError, Part, Place, Row, TypicalAcceptance, Weight};

/// A token and what it was drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn<W = f64> {
    /// The token.
    pub token: u32,
    /// `m(u)`, the probability that the row gave to all allowed tokens.
    pub mass: W,
    /// `ln m(u)`, right also where `m(u)` is too small for a number.
    pub log_mass: f64,
    /// `ln p(token)` under the warped row, before the mask.
    pub log_probability: f64,
    /// The log of the probability of everything that could be drawn: `ln m(u)`, or less where filters cut.
    pub log_kept: f64,
}

/// What a sampler does at a prefix.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<W = f64> {
    /// Append the token and go on.
    Token(Drawn<W>),
    /// Append the token, which ends the sequence; the sample is accepted.
    End(Drawn<W>),
    /// The attempt failed: drop the tokens of the answer and begin again after the prompt; where the sampler
    /// says so ([`Walk::aligned`](super::Walk::aligned)), after the first tokens of the answer.
    Restart,
    /// There will be no sample.
    Stuck(LawError),
}

/// A way to choose a token with the law of a part of a row: to draw it, or to judge tokens that were drawn
/// elsewhere.
pub trait Rule<W: Weight> {
    /// A token that has the law of the part, with random numbers of this place; `None` if the part has no
    /// mass.
    fn choose<P, C>(&self, part: &P, place: Place, chooser: &mut C) -> Option<u32>
    where
        P: Part<W>,
        C: Chooser<W> + ?Sized;

    /// The same where tokens that were drawn elsewhere may be accepted without having the law of the part. A
    /// rule that judges none chooses as always.
    fn choose_lossy<P, C>(
        &self,
        part: &P,
        _accepts: TypicalAcceptance,
        place: Place,
        chooser: &mut C,
    ) -> Option<u32>
    where
        P: Part<W>,
        C: Chooser<W> + ?Sized,
    {
        self.choose(part, place, chooser)
    }
}

/// Anything that chooses the next token of a sequence from a row and a mask.
pub trait Sampler<W: Weight> {
    /// The step at the current prefix. `row` and `allowed` must be those of that prefix.
    fn next<R, C>(&mut self, row: &R, allowed: Allowed<'_>, chooser: &mut C) -> Step<W>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized;

    /// The same step, with its token chosen by a rule where the sampler draws from the masked row. A sampler
    /// whose draw is more than that ignores the rule, which changes no law: so does this default, and the
    /// global law, whose draw also decides whether an attempt survives and which known continuation it takes.
    fn next_by<R, C>(
        &mut self,
        row: &R,
        allowed: Allowed<'_>,
        _rule: &impl Rule<W>,
        chooser: &mut C,
    ) -> Step<W>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        self.next(row, allowed, chooser)
    }
}
