//! The effect of the remaining token budget on an answer: from where on, whether it changed the text, and
//! whether it ended it.

use crate::request::Steered;

/// How the remaining token budget narrowed the choice at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// A token other than the likeliest that the grammar allows was excluded.
    Aside,
    /// The likeliest token was excluded.
    Diverted,
    /// All tokens that the grammar allows except the end were excluded.
    Ended,
}

/// The effect of the remaining token budget on a text so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steering {
    /// The index of the first token whose choice was narrowed; the end counts as one.
    from: Option<usize>,
    /// The index of the first token in place of which another one was likelier.
    diverted: Option<usize>,
    /// The index at which the text had to end.
    ended: Option<usize>,
}

impl Steering {
    /// Records that the choice of the token with this index was narrowed.
    pub(crate) fn note(&mut self, number: usize, narrowing: Narrowing) {
        self.from.get_or_insert(number);
        match narrowing {
            Narrowing::Aside => {}
            Narrowing::Diverted => _ = self.diverted.get_or_insert(number),
            Narrowing::Ended => self.ended = Some(number),
        }
    }

    /// Discards the records of all tokens but the first `to`.
    pub(crate) fn truncate(&mut self, to: usize) {
        for place in [&mut self.from, &mut self.diverted, &mut self.ended] {
            *place = place.filter(|&number| number < to);
        }
    }

    /// Returns the report for a text of `tokens` tokens without its end, whose limit was `max_tokens`.
    pub(crate) fn told(&self, tokens: usize, max_tokens: usize) -> Option<Steered> {
        self.from.map(|from| Steered {
            from: Some(from).filter(|&from| from < tokens),
            max_tokens,
            is_diverted: self.diverted.is_some(),
            is_ended: self.ended.is_some(),
        })
    }
}
