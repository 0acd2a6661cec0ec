//! What the tokens left took away from an answer: from where on, whether it led the text another way, and
//! whether it ended it.

use crate::request::Steered;

/// What a place was like whose choice the tokens left narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// A token was taken away, and not the likeliest that the grammar allows.
    Aside,
    /// The likeliest token was taken away.
    Diverted,
    /// All that the grammar allows but the end.
    Ended,
}

/// What the tokens left have done to a text so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steering {
    /// The first token whose choice was narrowed; the end counts as one.
    from: Option<usize>,
    /// The first in whose place another one was likelier.
    diverted: Option<usize>,
    /// Where the text had to end.
    ended: Option<usize>,
}

impl Steering {
    /// Remembers that the choice of the token with this number was narrowed.
    pub(crate) fn note(&mut self, number: usize, narrowing: Narrowing) {
        self.from.get_or_insert(number);
        match narrowing {
            Narrowing::Aside => {}
            Narrowing::Diverted => _ = self.diverted.get_or_insert(number),
            Narrowing::Ended => self.ended = Some(number),
        }
    }

    /// Forgets all tokens but the first `to`.
    pub(crate) fn truncate(&mut self, to: usize) {
        for place in [&mut self.from, &mut self.diverted, &mut self.ended] {
            *place = place.filter(|&number| number < to);
        }
    }

    /// What is told of it, of a text of so many tokens without its end, that had so many.
    pub(crate) fn told(&self, tokens: usize, max_tokens: usize) -> Option<Steered> {
        self.from.map(|from| Steered {
            from: Some(from).filter(|&from| from < tokens),
            max_tokens,
            is_diverted: self.diverted.is_some(),
            is_ended: self.ended.is_some(),
        })
    }
}
