//! The interface of drafters, and the text that they look at.

use super::constraint::Constraint;
use super::tree::Draft;
use crate::law::Distribution;

/// The tokens before the draft.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text<'a> {
    /// The prompt.
    pub prompt: &'a [u32],
    /// The answer so far.
    pub answer: &'a [u32],
}

impl Text<'_> {
    /// How many tokens both have.
    pub(super) fn len(self) -> usize {
        self.prompt.len() + self.answer.len()
    }

    /// The token at a place, which must be one of the text.
    pub(super) fn at(self, place: usize) -> u32 {
        match place.checked_sub(self.prompt.len()) {
            None => self.prompt[place],
            Some(place) => self.answer[place],
        }
    }
}

/// Guesses what comes next.
pub trait Drafter<C: Constraint, Q = Distribution<'static>>: Send {
    /// Offers tokens after the text and after what the draft already holds, until it has no more to say or
    /// one is refused.
    fn propose(&mut self, text: Text<'_>, draft: &mut Draft<'_, C, Q>);

    /// Learns how much of its last draft was accepted.
    fn observe(&mut self, _drafted: usize, _accepted: usize) {}
}
