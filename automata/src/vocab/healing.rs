//! Token healing: moves the end of a prompt back to the last boundary that no token can span.
//!
//! A prompt is tokenized before its continuation is known. If it ends in the middle of text that the model
//! would have written as one token, its last tokens are a spelling that the model has hardly ever seen, and
//! the continuation is biased: after `http`, `:` the model avoids `//`, because it has learned to write
//! `http`, `://`.
//!
//! ```text
//!   text      h t t p :            tokens that begin with a suffix of the text and are longer: "://", ":/"
//!   prompt    [http] [:]           the first such suffix begins at ':'
//!   healed    [http]   and ":"     the continuation is drawn anew from there, and begins with ":"
//! ```
//!
//! The removed bytes become a condition on the continuation:
//! [`CfgBuilder::with_prefix`](crate::grammar::CfgBuilder::with_prefix) prepends them to a grammar. Under the
//! global law the continuation has exactly the model's distribution given the kept tokens, conditioned on the
//! text beginning with the removed bytes and the rest obeying the grammar; all tokenizations of the removed
//! bytes count. The local law restricts each token in turn, so it ignores how likely the model is to complete
//! the removed bytes; the weight of a text corrects for this. If the model writes only what a longest-match
//! tokenizer writes, the global law is the distribution of texts given that they begin with the prompt:
//! `tests/laws/healing.rs` computes this in rationals.
//!
//! Sources: Ribeiro, "Prompt boundaries and token healing" (2023, the guidance library); Athiwaratkun et al.,
//! "Token Alignment via Character Matching for Subword Completion" (arXiv:2403.08688).

use super::{TokenKind, Vocabulary};

/// A prompt without the last tokens that a longer token could have replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Healed {
    /// The number of tokens of the prompt to keep, from its beginning.
    pub kept: usize,
    /// The bytes of the removed tokens, with which the continuation of the kept tokens begins. Empty if all
    /// tokens are kept. They end where the prompt ends, which may be in the middle of a character.
    pub removed: Vec<u8>,
}

impl Vocabulary {
    /// Removes the fewest tokens from the end of a prompt such that no token could begin in the kept part and
    /// end beyond the prompt.
    ///
    /// Only text tokens are removed. A special token, a mark, or a number that is not a token is a boundary
    /// that nothing spans. O(longest token²) at most; usually a few look-ups in the trie.
    ///
    /// ```
    /// use lexiform::vocab::{TokenKind, Vocabulary};
    ///
    /// let tokens = ["<end>", "http", ":", "://", "/"].map(|text| (TokenKind::Text, text));
    /// let vocabulary = Vocabulary::new(&tokens, &[0])?;
    /// let healed = vocabulary.heal(&[1, 2]);
    /// assert_eq!((healed.kept, &healed.removed[..]), (1, &b":"[..]));
    /// assert_eq!(vocabulary.heal(&[1, 3]).kept, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn heal(&self, prompt: &[u32]) -> Healed {
        // A longer token begins at most this many bytes before the end.
        let reach = self.longest().saturating_sub(1);
        let (mut first, mut bytes) = (prompt.len(), 0);
        while bytes < reach && first > 0 && self.writes_text(prompt[first - 1]) {
            first -= 1;
            bytes += self.bytes(prompt[first]).len();
        }
        let text: Vec<u8> = prompt[first..]
            .iter()
            .flat_map(|&token| self.bytes(token))
            .copied()
            .collect();
        let Some(begin) = (0..text.len()).find(|&begin| self.is_extended(&text[begin..])) else {
            return Healed {
                kept: prompt.len(),
                removed: Vec::new(),
            };
        };
        let (mut kept, mut at) = (first, 0);
        while at + self.bytes(prompt[kept]).len() <= begin {
            at += self.bytes(prompt[kept]).len();
            kept += 1;
        }
        Healed {
            kept,
            removed: text[at..].to_vec(),
        }
    }

    fn writes_text(&self, token: u32) -> bool {
        self.kind(token) == TokenKind::Text && !self.bytes(token).is_empty()
    }

    /// Returns `true` if some text token begins with these bytes and is longer.
    fn is_extended(&self, bytes: &[u8]) -> bool {
        let node = self.trie().find(bytes);
        node.is_some_and(|node| self.trie().nodes()[node].end as usize > node + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vocabulary<B: AsRef<[u8]> + Copy>(text: &[B]) -> Vocabulary {
        let mut tokens: Vec<(TokenKind, &[u8])> = text
            .iter()
            .map(|bytes| (TokenKind::Text, bytes.as_ref()))
            .collect();
        tokens.push((TokenKind::Mark, b"<mark>"));
        tokens.push((TokenKind::Special, b"<end>"));
        tokens.push((TokenKind::Unused, b""));
        Vocabulary::new(&tokens, &[text.len() as u32 + 1]).expect("a vocabulary")
    }

    fn healed(vocabulary: &Vocabulary, prompt: &[u32]) -> (usize, Vec<u8>) {
        let Healed { kept, removed } = vocabulary.heal(prompt);
        (kept, removed)
    }

    #[test]
    fn as_few_tokens_go_as_a_longer_one_needs() {
        let vocabulary = vocabulary(&["a", "b", "c", "ab", "abc", "cab"]);
        // "ab" could begin "abc", and "a" alone "ab".
        assert_eq!(healed(&vocabulary, &[2, 1, 0]), (2, b"a".to_vec()));
        assert_eq!(healed(&vocabulary, &[1, 3]), (1, b"ab".to_vec()));
        assert_eq!(healed(&vocabulary, &[1, 0, 1]), (1, b"ab".to_vec()));
        // "ca" could begin "cab", which is longer than "a" could begin.
        assert_eq!(healed(&vocabulary, &[1, 2, 0]), (1, b"ca".to_vec()));
        // Nothing begins with "b".
        assert_eq!(healed(&vocabulary, &[0, 2, 1]), (3, Vec::new()));
    }

    #[test]
    fn a_longer_token_may_begin_inside_of_one() {
        let vocabulary = vocabulary(&["xa", "b", "abc", "x"]);
        assert_eq!(healed(&vocabulary, &[3, 0, 1]), (1, b"xab".to_vec()));
    }

    #[test]
    fn nothing_is_removed_from_nothing_and_all_of_it_may_go() {
        let vocabulary = vocabulary(&["a", "b", "ab"]);
        assert_eq!(healed(&vocabulary, &[]), (0, Vec::new()));
        assert_eq!(healed(&vocabulary, &[0]), (0, b"a".to_vec()));
        let none = Vocabulary::new(&[(TokenKind::Special, "<end>")], &[0]).expect("a vocabulary");
        assert_eq!(healed(&none, &[0]), (1, Vec::new()));
    }

    #[test]
    fn what_writes_no_text_is_a_boundary() {
        let vocabulary = vocabulary(&["a", "b", "aab", "<mark>b", "<end>b"]);
        let (mark, end, hole) = (5, 6, 7);
        for boundary in [mark, end, hole, 1_000_000] {
            assert_eq!(healed(&vocabulary, &[0, boundary]), (2, Vec::new()));
            assert_eq!(healed(&vocabulary, &[0, boundary, 0]), (2, b"a".to_vec()));
        }
        assert_eq!(healed(&vocabulary, &[0, 0]), (0, b"aa".to_vec()));
    }

    /// Tokens with equal bytes, such as a letter and a token for its byte.
    #[test]
    fn several_tokens_of_the_same_bytes_are_alike() {
        let vocabulary = vocabulary(&["A", "A", "AB", "B"]);
        for token in [0, 1] {
            assert_eq!(healed(&vocabulary, &[3, token]), (1, b"A".to_vec()));
        }
    }

    /// A prompt with a character split into byte tokens, and one with a character in two tokens.
    #[test]
    fn tokens_may_end_inside_of_characters() {
        let euro = "€".as_bytes();
        let vocabulary = vocabulary(&[&euro[..1], &euro[1..2], &euro[2..], &euro[..2], euro, b"a"]);
        assert_eq!(healed(&vocabulary, &[5, 0, 1]), (1, euro[..2].to_vec()));
        assert_eq!(healed(&vocabulary, &[5, 3]), (1, euro[..2].to_vec()));
        assert_eq!(healed(&vocabulary, &[5, 0, 1, 2]), (4, Vec::new()));
    }

    proptest! {
        /// Checks the definition: no token spans the end from before the boundary, and from every later
        /// boundary some token does.
        #[test]
        fn it_is_the_last_boundary_that_no_token_spans(
            words in prop::collection::vec("[ab]{1,4}", 1..8),
            prompt in prop::collection::vec(0usize..8, 0..6),
        ) {
            let vocabulary = vocabulary(&words.iter().map(String::as_str).collect::<Vec<_>>());
            let prompt: Vec<u32> = prompt.iter().map(|token| (token % words.len()) as u32).collect();
            let text: String = prompt.iter().map(|&token| words[token as usize].as_str()).collect();
            let length = |kept: usize| prompt[..kept].iter().map(|&token| words[token as usize].len()).sum::<usize>();
            let spans = |at: usize| words.iter().any(|word| word.len() > text.len() - at && word.starts_with(&text[at..]));
            let is_safe = |kept: &usize| !(0..length(*kept)).any(spans);
            let kept = (0..=prompt.len()).rev().find(is_safe).expect("nothing begins before the text");
            prop_assert_eq!(healed(&vocabulary, &prompt), (kept, text.as_bytes()[length(kept)..].to_vec()));
        }
    }
}
