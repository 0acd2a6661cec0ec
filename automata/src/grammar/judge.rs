//! Languages that are no regular ones.
//!
//! Of some languages every word can be told from what is none only once it is whole, by more than an
//! automaton can remember, but how words may *begin* is regular. A [`Judge`] tells both: an expression of the
//! beginnings, each of which can become a word, and of a whole text whether it is one.
//!
//! # Why a function, and not an automaton
//!
//! Whether a label of a host name in Punycode is valid depends on the text that it decodes to. How a valid
//! label may *begin* is regular ([`idna`](crate::idna) explains why), so masks use the language of
//! beginnings and are as exact as all others; the function decodes the text only where the label would end.
//! Such a language cannot be intersected with others. Therefore names in Punycode are allowed only where the
//! format is the only constraint of a string, and a finding says so. A negated format excludes a larger
//! language, so that no invalid value is accepted.

use crate::idna::{self, Directions};

use super::regular::{Part, Regular};

/// A language by who tells its words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Judge {
    /// What stands behind `xn--` in a label of a host name in Punycode, of characters none of which runs from
    /// right to left. Such labels may stand beside all others like them.
    LabelFromLeft,
    /// The same of characters in the order of RFC 5893. Such labels may stand beside all others like them.
    OrderedLabel,
}

impl Judge {
    /// Whether a text is a word.
    pub fn accepts(self, text: &[u8]) -> bool {
        let directions = match self {
            Judge::LabelFromLeft => Directions::LeftToRight,
            Judge::OrderedLabel => Directions::Ordered,
        };
        idna::is_label(text, directions)
    }

    /// What words begin with, but for the empty text, which is no word. All of it can be completed.
    pub(super) fn beginnings(self) -> Regular {
        let pattern = regex_syntax::parse(&idna::beginnings());
        let pattern = pattern.expect("the expression of the beginnings is well formed");
        Regular {
            parts: vec![Part::Match(pattern.into())],
        }
    }

    /// Texts that complete what begins a word, each by how often `a` stands in front of something. Behind
    /// each of their bytes the rest is one of the texts there.
    pub(crate) fn completions(self, text: &[u8]) -> impl Iterator<Item = (usize, &'static [u8])> {
        idna::completions(text)
    }

    /// The longest that the shortest of them is, whatever begins a word.
    pub(crate) fn longest_completion(self) -> usize {
        idna::longest_completion()
    }
}
