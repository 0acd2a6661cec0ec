//! The tokens that end a sequence, as chosen by one request.
//!
//! A vocabulary names the tokens that end a sequence of its model. Engines let a request choose others: a
//! stop token, or all but one of several. Such a token is *allowed where the text may end, and nowhere else*,
//! and it ends the sequence.
//!
//! ```text
//!   text so far      mask of the grammar             mask with ends {stop}
//!   incomplete       allowed tokens                  the same without stop
//!   complete         allowed tokens, eos             allowed tokens, stop
//! ```
//!
//! A stop token that is also text of the language can no longer be written as text. Where the text can
//! continue only with that token as text, no token is left: this is the effect that the request asks for.

use std::sync::Arc;

use super::{Grammar, State};
use crate::error::Exhausted;
use crate::pushdown::FINISHED;
use crate::vocab::{Vocabulary, VocabularyError};

/// The tokens that end the sequence of one request, instead of those that the vocabulary names. Cheap to
/// clone.
///
/// ```
/// # use std::sync::Arc;
/// # use lexiform::{Ends, MaskRequest, Options, Source, compile};
/// # use lexiform::vocab::{TokenKind, Vocabulary};
/// let tokens = ["<eos>", "a", "<stop>"].map(|text| (TokenKind::Text, text));
/// let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
/// let (grammar, _) = compile(Source::Regex("a+"), &vocab, &Options::default())?;
/// let ends = Ends::new([2], &vocab)?;
/// let state = grammar.step(grammar.start(), 1).ok_or("not allowed")?;
/// let request = MaskRequest::from(state);
/// assert_eq!(grammar.try_mask(request)?.iter().collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(grammar.try_mask(request.ending(&ends))?.iter().collect::<Vec<_>>(), [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// Sorted in ascending order, without duplicates.
    tokens: Arc<[u32]>,
}

impl Ends {
    /// Creates a set of end tokens of a vocabulary. With an empty set, no mask allows the sequence to end.
    ///
    /// # Errors
    /// Returns an error if one of the tokens is outside the vocabulary.
    pub fn new(
        tokens: impl IntoIterator<Item = u32>,
        vocabulary: &Vocabulary,
    ) -> Result<Ends, VocabularyError> {
        let mut tokens: Vec<u32> = tokens.into_iter().collect();
        tokens.sort_unstable();
        tokens.dedup();
        let len = vocabulary.len();
        match tokens.last() {
            Some(&token) if token as usize >= len => Err(VocabularyError::NoSuchEos { token, len }),
            _ => Ok(Ends {
                tokens: tokens.into(),
            }),
        }
    }

    /// Returns `true` if this token ends the sequence.
    pub fn contains(&self, token: u32) -> bool {
        self.tokens.binary_search(&token).is_ok()
    }

    /// Returns the tokens in ascending order.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }
}

impl Grammar {
    /// Returns the state after a token, with the end tokens of one request; `None` if the token may not come
    /// next. End tokens are allowed only where the text may end.
    ///
    /// # Errors
    /// Returns an error if the step costs more than its limits allow.
    pub fn step_for(
        &self,
        state: State,
        token: u32,
        ends: Option<&Ends>,
    ) -> Result<Option<State>, Exhausted> {
        match ends {
            None => self.try_step(state, token),
            Some(ends) if ends.contains(token) => Ok(self.is_accepting(state).then_some(State(FINISHED))),
            Some(_) if self.vocabulary().is_eos(token) => self.ask(|| self.step_named(state, token)),
            Some(_) => self.try_step(state, token),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::TokenKind;

    #[test]
    fn ends_are_tokens_of_the_vocabulary() {
        let tokens = ["a", "b", "c"].map(|text| (TokenKind::Text, text));
        let vocabulary = Vocabulary::new(&tokens, &[0]).expect("a vocabulary");
        let ends = Ends::new([2, 1, 2], &vocabulary).expect("both are there");
        assert_eq!(
            (ends.tokens(), ends.contains(1), ends.contains(0)),
            (&[1, 2][..], true, false)
        );
        let outside = Ends::new([1, 3], &vocabulary).expect_err("there are three tokens");
        assert_eq!(outside, VocabularyError::NoSuchEos { token: 3, len: 3 });
    }
}
