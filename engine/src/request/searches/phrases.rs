//! Phrases that an answer must contain, and the progress of a prefix in them.
//!
//! A phrase is matched in the bytes that the tokens of an answer write, however the answer is tokenised. The
//! progress of a prefix in a phrase is the length of the longest part of the phrase, from its start, that the
//! prefix ends with, in bytes (Knuth, Morris, Pratt 1977); counted in tokens, it is the number of the
//! phrase's own tokens within that part.

use lexiform::vocab::{TokenKind, Vocabulary};
use std::ops::Range;
use std::sync::Arc;

/// A formula of phrases: of each clause an answer must contain one phrase, and of the forbidden ones none.
pub(crate) struct Clauses {
    phrases: Phrases,
    /// The numbers of the phrases of each clause.
    clauses: Vec<Range<usize>>,
    /// The number of the first forbidden phrase; all after it are forbidden, too.
    forbidden: usize,
}

impl Clauses {
    /// Returns the formula of these clauses and of forbidden phrases, all given as tokens that write
    /// something.
    pub(crate) fn new(
        (clauses, forbidden): (&[Vec<Vec<u32>>], &[Vec<u32>]),
        vocabulary: Arc<Vocabulary>,
    ) -> Self {
        let mut ranges = Vec::with_capacity(clauses.len());
        let mut first = 0;
        for clause in clauses {
            ranges.push(first..first + clause.len());
            first += clause.len();
        }
        let all: Vec<Vec<u32>> = clauses.iter().flatten().chain(forbidden).cloned().collect();
        Clauses {
            phrases: Phrases::new(&all, vocabulary),
            clauses: ranges,
            forbidden: first,
        }
    }

    /// Returns the progress of the empty prefix.
    pub(crate) fn start(&self) -> Progress {
        self.phrases.start()
    }

    /// Returns the progress after one more token; `None` if it completes a forbidden phrase.
    pub(crate) fn advance(&self, progress: &Progress, token: u32) -> Option<Progress> {
        let progress = self.phrases.advance(progress, token);
        let forbidden = self.forbidden..self.phrases.len();
        let is_violated = forbidden
            .into_iter()
            .any(|phrase| self.phrases.contains(&progress, phrase));
        (!is_violated).then_some(progress)
    }

    /// Returns the number of clauses.
    pub(crate) fn len(&self) -> usize {
        self.clauses.len()
    }

    /// Returns the number of clauses of which a prefix contains a phrase.
    pub(crate) fn met(&self, progress: &Progress) -> usize {
        self.clauses
            .iter()
            .filter(|clause| self.is_met(progress, clause))
            .count()
    }

    /// Returns the number of tokens of all clauses, of which each has as many as the longest of its phrases.
    pub(crate) fn tokens(&self) -> usize {
        self.clauses.iter().map(|clause| self.tokens_in(clause)).sum()
    }

    /// Returns the number of these tokens that a prefix has: those of the clauses that it meets, and those
    /// matched at its end of the phrase that is furthest.
    pub(crate) fn tokens_of(&self, progress: &Progress) -> usize {
        let (mut met, mut begun) = (0, 0);
        for clause in &self.clauses {
            match self.is_met(progress, clause) {
                true => met += self.tokens_in(clause),
                false => {
                    let matched = clause
                        .clone()
                        .map(|phrase| self.phrases.matched(progress, phrase));
                    begun = begun.max(matched.max().unwrap_or(0));
                }
            }
        }
        met + begun
    }

    fn tokens_in(&self, clause: &Range<usize>) -> usize {
        let tokens = self.phrases.phrases[clause.clone()]
            .iter()
            .map(|phrase| phrase.ends.len());
        tokens.max().unwrap_or(0)
    }

    /// Returns the tokens that continue or begin a phrase of a clause that is not met.
    pub(crate) fn next(&self, progress: &Progress) -> Vec<u32> {
        let unmet = self
            .clauses
            .iter()
            .filter(|clause| !self.is_met(progress, clause));
        self.phrases.next_of(progress, unmet.cloned().flatten())
    }

    fn is_met(&self, progress: &Progress, clause: &Range<usize>) -> bool {
        clause
            .clone()
            .any(|phrase| self.phrases.contains(progress, phrase))
    }
}

/// The phrases of one request.
pub(crate) struct Phrases {
    phrases: Vec<Phrase>,
    vocabulary: Arc<Vocabulary>,
}

struct Phrase {
    bytes: Vec<u8>,
    /// The byte offsets at which its tokens end.
    ends: Vec<usize>,
    /// The failure function: for each number of matched bytes, the number matched by their longest proper
    /// suffix that also begins the phrase.
    falls: Vec<usize>,
}

/// The progress of a prefix in each phrase: the number of matched bytes, or all of them once it is contained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress(Vec<usize>);

impl Phrases {
    /// Returns the phrases, given as tokens that write something.
    pub(crate) fn new(phrases: &[Vec<u32>], vocabulary: Arc<Vocabulary>) -> Self {
        let phrase = |tokens: &Vec<u32>| {
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            for &token in tokens {
                bytes.extend_from_slice(written(&vocabulary, token));
                ends.push(bytes.len());
            }
            let falls = falls(&bytes);
            Phrase { bytes, ends, falls }
        };
        Phrases {
            phrases: phrases.iter().map(phrase).collect(),
            vocabulary,
        }
    }

    /// Returns the progress of the empty prefix.
    pub(crate) fn start(&self) -> Progress {
        Progress(vec![0; self.phrases.len()])
    }

    /// Returns the progress after one more token.
    pub(crate) fn advance(&self, progress: &Progress, token: u32) -> Progress {
        let bytes = written(&self.vocabulary, token);
        let read =
            |(phrase, &at): (&Phrase, &usize)| bytes.iter().fold(at, |at, &byte| phrase.read(at, byte));
        Progress(self.phrases.iter().zip(&progress.0).map(read).collect())
    }

    /// Returns the number of tokens of all phrases together.
    pub(crate) fn tokens(&self) -> usize {
        self.phrases.iter().map(|phrase| phrase.ends.len()).sum()
    }

    /// Returns the number of phrase tokens that a prefix has: those of the phrases that it contains, and
    /// those matched at its end of the phrase that is furthest.
    pub(crate) fn tokens_of(&self, progress: &Progress) -> usize {
        let (mut met, mut begun) = (0, 0);
        for phrase in 0..self.phrases.len() {
            let tokens = self.matched(progress, phrase);
            match self.contains(progress, phrase) {
                true => met += tokens,
                false => begun = begun.max(tokens),
            }
        }
        met + begun
    }

    /// Returns the number of phrases that a prefix contains.
    pub(crate) fn met(&self, progress: &Progress) -> usize {
        let is_met = |pair: &(&Phrase, &usize)| *pair.1 == pair.0.bytes.len();
        self.phrases.iter().zip(&progress.0).filter(is_met).count()
    }

    /// Returns the number of phrases.
    pub(crate) fn len(&self) -> usize {
        self.phrases.len()
    }

    /// Returns the number of tokens of the phrase with this number that are matched.
    fn matched(&self, progress: &Progress, phrase: usize) -> usize {
        let at = progress.0[phrase];
        self.phrases[phrase].ends.partition_point(|&end| end <= at)
    }

    /// Returns `true` if a prefix contains the phrase with this number.
    fn contains(&self, progress: &Progress, phrase: usize) -> bool {
        progress.0[phrase] == self.phrases[phrase].bytes.len()
    }

    /// Returns the tokens that continue a phrase that is not yet contained, or begin one, with or without a
    /// space before it.
    pub(crate) fn next(&self, progress: &Progress) -> Vec<u32> {
        self.next_of(progress, 0..self.phrases.len())
    }

    /// Returns such tokens of the phrases with these numbers.
    fn next_of(&self, progress: &Progress, which: impl Iterator<Item = usize>) -> Vec<u32> {
        let trie = self.vocabulary.trie();
        let mut tokens = Vec::new();
        for number in which {
            let (phrase, at) = (&self.phrases[number], progress.0[number]);
            let rest = &phrase.bytes[at..];
            tokens.extend(trie.prefixes(rest).flat_map(|(_, tokens)| tokens));
            if at == 0 {
                let spaced = [b" ", rest].concat();
                let begins = trie.prefixes(&spaced).filter(|(length, _)| *length > 1);
                tokens.extend(begins.flat_map(|(_, tokens)| tokens.to_vec()));
            }
        }
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }
}

impl Phrase {
    /// Returns the number of matched bytes after one more byte. A phrase that is contained stays contained.
    fn read(&self, mut at: usize, byte: u8) -> usize {
        if at == self.bytes.len() {
            return at;
        }
        while at > 0 && self.bytes[at] != byte {
            at = self.falls[at - 1];
        }
        at + usize::from(self.bytes[at] == byte)
    }
}

/// Returns, for each prefix of some bytes, the length of its longest proper suffix that is also a prefix.
fn falls(bytes: &[u8]) -> Vec<usize> {
    let mut falls = vec![0; bytes.len()];
    let mut at = 0;
    for end in 1..bytes.len() {
        while at > 0 && bytes[at] != bytes[end] {
            at = falls[at - 1];
        }
        at += usize::from(bytes[at] == bytes[end]);
        falls[end] = at;
    }
    falls
}

fn written(vocabulary: &Vocabulary, token: u32) -> &[u8] {
    match vocabulary.kind(token) {
        TokenKind::Text | TokenKind::Mark => vocabulary.bytes(token),
        TokenKind::Special | TokenKind::Unused => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrases(texts: &[&[u32]]) -> Phrases {
        let tokens = ["a", "b", "ab", " ", " a", "$"].map(|text| (TokenKind::Text, text));
        let texts: Vec<Vec<u32>> = texts.iter().map(|text| text.to_vec()).collect();
        Phrases::new(&texts, Arc::new(Vocabulary::new(&tokens, &[5]).unwrap()))
    }

    /// `aabab` in `aaabab`, tokenised in four ways: it is always found, and matched bytes are not lost at a
    /// mismatch.
    #[test]
    fn a_phrase_is_found_in_any_cut() {
        let phrases = phrases(&[&[0, 2, 2]]);
        for cut in [
            &[0, 0, 0, 1, 0, 1][..],
            &[0, 0, 2, 2],
            &[0, 0, 0, 1, 2],
            &[4, 0, 2, 0, 1],
        ] {
            let read = |progress: Progress, token: &u32| phrases.advance(&progress, *token);
            let progress = cut.iter().fold(phrases.start(), read);
            assert_eq!(phrases.met(&progress), 1, "{cut:?}");
            assert_eq!(phrases.tokens_of(&progress), phrases.tokens());
        }
    }

    #[test]
    fn tokens_are_counted_of_what_is_met_and_of_what_is_begun() {
        let phrases = phrases(&[&[0, 2], &[1, 1, 1]]);
        let progress = phrases.advance(&phrases.start(), 1);
        assert_eq!((phrases.tokens_of(&progress), phrases.met(&progress)), (1, 0));
        let progress = phrases.advance(&phrases.advance(&progress, 0), 2);
        // `aab` is contained, and its `b` begins the other phrase.
        assert_eq!((phrases.tokens_of(&progress), phrases.met(&progress)), (3, 1));
        assert_eq!(phrases.next(&progress), [1]);
        assert_eq!(phrases.next(&phrases.start()), [0, 1, 4]);
    }
}
