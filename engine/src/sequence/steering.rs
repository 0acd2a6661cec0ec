//! The effect of the remaining token budget on an answer: from where on, whether it changed the text, and
//! whether it ended it; and the effect of the limit of its preamble.

use crate::request::{PreambleLimit, Steered, SteeredPreamble};

/// How the remaining token budget narrowed the choice at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// A token other than the likeliest that the grammar allows was excluded.
    Aside,
    /// The likeliest token was excluded.
    Diverted,
    /// All tokens that the grammar allows except the end were excluded.
    Ended,
    /// A token was excluded after which the text before the answer would be too long.
    Preamble,
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
    /// The index of the first token whose choice the limit of the preamble narrowed.
    preamble: Option<usize>,
}

impl Steering {
    /// Records that the choice of the token with this index was narrowed.
    pub(crate) fn note(&mut self, number: usize, narrowing: Narrowing) {
        self.from.get_or_insert(number);
        match narrowing {
            Narrowing::Aside => {}
            Narrowing::Diverted => _ = self.diverted.get_or_insert(number),
            Narrowing::Ended => self.ended = Some(number),
            Narrowing::Preamble => _ = self.preamble.get_or_insert(number),
        }
    }

    /// Discards the records of all tokens but the first `to`.
    pub(crate) fn truncate(&mut self, to: usize) {
        let places = [
            &mut self.from,
            &mut self.diverted,
            &mut self.ended,
            &mut self.preamble,
        ];
        for place in places {
            *place = place.filter(|&number| number < to);
        }
    }

    /// Returns the report for a text of `tokens` tokens without its end, with these limits on all tokens and
    /// on those of its preamble.
    pub(crate) fn told(
        &self,
        tokens: usize,
        (max_tokens, preamble): (usize, Option<PreambleLimit>),
    ) -> Option<Steered> {
        self.from.map(|from| Steered {
            from: Some(from).filter(|&from| from < tokens),
            max_tokens,
            is_diverted: self.diverted.is_some(),
            is_ended: self.ended.is_some(),
            preamble: self.preamble.zip(preamble).map(|(from, limit)| SteeredPreamble {
                from: small(from),
                max_tokens: small(limit.max_tokens),
            }),
        })
    }
}

/// Returns a number of tokens in few bytes: answers are shorter than the greatest number that fits.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
