//! Languages that are not regular.
//!
//! In some languages, deciding whether a whole word belongs to the language takes more than an automaton can
//! remember, but the *prefixes* of the words are a regular language. A [`Validator`] provides both: an
//! expression of the prefixes, each of which can be completed to a word, and a function that decides whether
//! a whole text is a word.
//!
//! # Why a function, and not an automaton
//!
//! Whether a label of a host name in Punycode is valid depends on the text that it decodes to. The *prefixes*
//! of valid labels are regular ([`idna`](crate::idna) explains why), so masks use the language of prefixes
//! and are as exact as all others; the function decodes the text only where the label would end. Such a
//! language cannot be intersected with others. Therefore names in Punycode are allowed only where the format
//! is the only constraint of a string, and a finding says so. A negated format excludes a larger language, so
//! that no invalid value is accepted.

use crate::idna::{self, Directions};

use super::regular::{Part, Regular};

/// A language that is not regular, with the function that decides it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Validator {
    /// The part after `xn--` of a Punycode label of a host name without right-to-left characters. Such labels
    /// may be combined freely with each other.
    LabelFromLeft,
    /// The part after `xn--` of a Punycode label whose characters are ordered as RFC 5893 requires. Such
    /// labels may be combined freely with each other.
    OrderedLabel,
}

impl Validator {
    /// Returns `true` if the text is a word of the language.
    pub fn accepts(self, text: &[u8]) -> bool {
        let directions = match self {
            Validator::LabelFromLeft => Directions::LeftToRight,
            Validator::OrderedLabel => Directions::Ordered,
        };
        idna::is_label(text, directions)
    }

    /// Returns the language of the non-empty prefixes of words (the empty text is not a word). Each of them
    /// can be completed to a word.
    pub(super) fn beginnings(self) -> Regular {
        let pattern = regex_syntax::parse(&idna::beginnings());
        let pattern = pattern.expect("the expression of the beginnings is well formed");
        Regular::of(vec![Part::Match(pattern.into())])
    }

    /// Returns completions of a prefix of a word, each as a number of letters `a` and the text after them.
    /// After each byte of a completion, the rest is again a completion of the text read so far.
    pub(crate) fn completions(self, text: &[u8]) -> impl Iterator<Item = (usize, &'static [u8])> {
        idna::completions(text)
    }

    /// Returns the greatest length, over all prefixes of words, of the shortest completion.
    pub(crate) fn longest_completion(self) -> usize {
        idna::longest_completion()
    }
}
