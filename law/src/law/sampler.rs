//! The interface of samplers: from a row and a mask to the next step of a sequence.

use super::{Allowed, Chooser, LawError, Part, Place, Row, TypicalAcceptance, Weight};

/// A token and the masses of what it was drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn<W = f64> {
    /// The token.
    pub token: u32,
    /// `m(u)`, the probability that the row gave to all allowed tokens.
    pub mass: W,
    /// `ln m(u)`, accurate even if `m(u)` is too small for the number type.
    pub log_mass: f64,
    /// `ln p(token)` under the warped row, before the mask.
    pub log_probability: f64,
    /// The log of the probability of all tokens that could be drawn: `ln m(u)`, or less where filters cut.
    pub log_kept: f64,
}

/// The outcome of a sampler at a prefix.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<W = f64> {
    /// Append the token and continue.
    Token(Drawn<W>),
    /// Append the token, which ends the sequence; the sample is accepted.
    End(Drawn<W>),
    /// The attempt failed: drop the tokens of the answer and begin again after the prompt or, under
    /// approximately aligned decoding ([`Walk::aligned`](super::Walk::aligned)), after the first tokens of
    /// the answer.
    Restart,
    /// There will be no sample.
    Stuck(LawError),
}

/// A way to choose a token with the law of a part of a row: drawing it, or judging tokens that were drawn
/// elsewhere.
pub trait Rule<W: Weight> {
    /// Returns a token that has the law of the part, with the random numbers of this place; `None` if the
    /// part has no mass.
    fn choose<P, C>(&self, part: &P, place: Place, chooser: &mut C) -> Option<u32>
    where
        P: Part<W>,
        C: Chooser<W> + ?Sized;

    /// Like [`choose`](Self::choose), but tokens that were drawn elsewhere may be accepted without having the
    /// law of the part. A rule that judges no such tokens chooses as always.
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
    /// Takes the step at the current prefix. `row` and `allowed` must belong to that prefix.
    fn next<R, C>(&mut self, row: &R, allowed: Allowed<'_>, chooser: &mut C) -> Step<W>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized;

    /// Like [`next`](Self::next), with the token chosen by a rule where the sampler draws from the masked
    /// row. A sampler whose draw decides more than the token ignores the rule, which changes no law: this
    /// default does so, and so does the global law, whose draw also decides whether an attempt survives and
    /// which known continuation it takes.
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
