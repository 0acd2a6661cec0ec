//! Retrieval from a corpus by its suffix array.

use super::{Candidate, Context, Predictor};
use crate::draft::Origin;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The most tokens of a text that are matched, as in the paper.
const LONGEST_MATCH: usize = 16;
/// Shorter matches are mostly chance.
const SHORTEST_MATCH: usize = 2;
/// The number of tokens by which places are sorted: one more than is matched.
const SORTED: usize = LONGEST_MATCH + 1;
/// The most different tokens that are considered after a match.
const DIFFERENT: usize = 64;
/// Separates two texts. It is no token of any vocabulary, so that no match crosses it.
const END: u32 = u32::MAX;

/// The tokens that followed the longest suffix of the text in a corpus ([He et al.
/// 2023](https://arxiv.org/abs/2311.08252), REST).
///
/// The operator provides the corpus: answers of an earlier day, code, documents. It is read once, and clones
/// share it. The longest suffix of at most 16 tokens that occurs in it is found by binary search; each token
/// that followed it is a candidate, with the share of the places at which it did. As for
/// [`Suffixes`](super::Suffixes), the longer the match, the surer it is that one of them comes: a passage
/// that occurs once is drafted to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retrieval(Arc<Corpus>);

#[derive(Debug, PartialEq, Eq)]
struct Corpus {
    tokens: Vec<u32>,
    /// The places of the corpus, sorted by the tokens from there on.
    places: Vec<u32>,
}

/// The reason why a corpus cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CorpusError {
    /// It has more tokens than there are numbers for places.
    TooLong {
        /// The number of its tokens.
        tokens: usize,
        /// The limit.
        most: usize,
    },
}

impl fmt::Display for CorpusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CorpusError::TooLong { tokens, most } = self;
        write!(f, "the corpus has {tokens} tokens; the limit is {most}")
    }
}

impl std::error::Error for CorpusError {}

impl Retrieval {
    /// The number of bytes that a token of a corpus takes: the token, and its place in the sorted order.
    pub const TOKEN_BYTES: usize = 2 * size_of::<u32>();

    /// Sorts the texts of a corpus as [`new`](Self::new) does. Nothing is retrieved across the end of a
    /// text.
    ///
    /// # Errors
    /// The texts are too long together.
    pub fn of_texts(texts: impl IntoIterator<Item = Vec<u32>>) -> Result<Retrieval, CorpusError> {
        let mut tokens = Vec::new();
        for text in texts {
            tokens.extend(text);
            tokens.push(END);
        }
        tokens.pop();
        tokens.shrink_to_fit();
        Retrieval::new(tokens)
    }

    /// Returns the largest token; `None` for an empty corpus. A model can only be given tokens that it has a
    /// row for.
    pub fn greatest(&self) -> Option<u32> {
        let tokens = self.0.tokens.iter().copied();
        tokens.filter(|&token| token != END).max()
    }

    /// Sorts a corpus, in O(n log n).
    ///
    /// # Errors
    /// The corpus is too long.
    pub fn new(tokens: Vec<u32>) -> Result<Retrieval, CorpusError> {
        let Ok(length) = u32::try_from(tokens.len()) else {
            return Err(CorpusError::TooLong {
                tokens: tokens.len(),
                most: u32::MAX as usize,
            });
        };
        let mut places: Vec<u32> = (0..length).collect();
        let from = |place: u32| {
            let place = place as usize;
            &tokens[place..tokens.len().min(place + SORTED)]
        };
        places.sort_unstable_by(|&one, &other| from(one).cmp(from(other)));
        Ok(Retrieval(Arc::new(Corpus { tokens, places })))
    }
}

impl Corpus {
    fn from(&self, place: u32) -> &[u32] {
        &self.tokens[place as usize..]
    }

    /// Returns the places at which these tokens occur.
    fn places(&self, wanted: &[u32]) -> &[u32] {
        let compare = |place: u32| {
            let here = self.from(place);
            here[..here.len().min(wanted.len())].cmp(wanted)
        };
        let begin = self
            .places
            .partition_point(|&place| compare(place) == Ordering::Less);
        let length = self.places[begin..].partition_point(|&place| compare(place) == Ordering::Equal);
        &self.places[begin..begin + length]
    }

    /// Returns the tokens that follow these places with the number of places of each, the most frequent
    /// first.
    fn following(&self, mut places: &[u32], matched: usize) -> Vec<(u32, usize)> {
        let next = |place: u32| self.from(place).get(matched).copied();
        let mut following = Vec::new();
        while let Some(&place) = places.first() {
            if following.len() == DIFFERENT {
                break;
            }
            let token = next(place);
            let length = places.partition_point(|&place| next(place) <= token);
            // Nothing follows the end of a text.
            let token = token.filter(|&token| token != END);
            following.extend(token.map(|token| (token, length)));
            places = &places[length..];
        }
        following.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        following
    }
}

impl Predictor for Retrieval {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let mut text: Vec<u32> = at.back().take(LONGEST_MATCH).collect();
        text.reverse();
        for begin in 0..(text.len() + 1).saturating_sub(SHORTEST_MATCH) {
            let wanted = &text[begin..];
            let places = self.0.places(wanted);
            if places.is_empty() {
                continue;
            }
            let known = wanted.len() as f32 / (wanted.len() as f32 + 1.0);
            let candidate = |(token, count): (u32, usize)| Candidate {
                token,
                chance: known * count as f32 / places.len() as f32,
                origin: Origin::Retrieved,
            };
            found.extend(self.0.following(places, wanted.len()).into_iter().map(candidate));
            return;
        }
    }

    fn bytes(&self) -> usize {
        size_of::<u32>() * (self.0.tokens.capacity() + self.0.places.capacity())
    }
}
