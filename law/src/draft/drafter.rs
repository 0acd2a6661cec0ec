//! The interface of drafters, and the text that they read.

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
    /// Returns the number of tokens of the prompt and the answer.
    pub(super) fn len(self) -> usize {
        self.prompt.len() + self.answer.len()
    }

    /// Returns the token at a place, which must be within the text.
    pub(super) fn at(self, place: usize) -> u32 {
        match place.checked_sub(self.prompt.len()) {
            None => self.prompt[place],
            Some(place) => self.answer[place],
        }
    }
}

/// Guesses the next tokens.
pub trait Drafter<C: Constraint, Q = Distribution<'static>>: Send {
    /// Offers tokens after the text and after what the draft already holds, until it has no more to offer or
    /// one is refused.
    fn propose(&mut self, text: Text<'_>, draft: &mut Draft<'_, C, Q>);

    /// Reports how much of the last draft was accepted.
    fn observe(&mut self, _drafted: usize, _accepted: usize) {}
}
