//! The tokens of a vocabulary by number of characters.
//!
//! At the end of a string of at most 60 characters, the mask depends on how long tokens are. For each small
//! number of characters there is a set of all tokens with no more characters; the few longer tokens are in a
//! list.

use crate::mask::set::{Mask, TokenSet};
use crate::vocab::Vocabulary;

/// The largest number of characters for which there is a set.
const SETS: usize = 16;

/// The number of characters that begin in each token of a vocabulary.
#[derive(Debug)]
pub(crate) struct TokenLengths {
    of: Box<[u16]>,
    /// The tokens with at most as many characters as the index.
    at_most: Vec<Mask>,
    /// The tokens with more characters than any set covers, in descending order of characters.
    longer: Box<[(u16, u32)]>,
}

/// Returns `true` if a byte begins a character, judging by the byte alone.
#[inline]
pub(crate) fn begins(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

impl TokenLengths {
    pub(crate) fn new(vocab: &Vocabulary) -> TokenLengths {
        let mut of = vec![0u16; vocab.len()];
        let mut at_most = vec![Mask::empty(vocab.len()); SETS + 1];
        let mut longer = Vec::new();
        for &token in vocab.trie().tokens() {
            let characters = vocab.bytes(token).iter().filter(|&&byte| begins(byte)).count();
            let length = u16::try_from(characters).unwrap_or(u16::MAX);
            of[token as usize] = length;
            match at_most.get_mut(usize::from(length)) {
                Some(mask) => mask.insert(token),
                None => longer.push((length, token)),
            }
        }
        for length in 1..at_most.len() {
            let (shorter, more) = at_most.split_at_mut(length);
            more[0].unite(&shorter[length - 1]);
        }
        longer.sort_unstable_by(|one, other| other.cmp(one));
        TokenLengths {
            of: of.into(),
            at_most,
            longer: longer.into(),
        }
    }

    /// Adds those of `tokens` that have at most `most` characters.
    pub(crate) fn add_shorter(&self, tokens: &TokenSet, most: i64, mask: &mut Mask) {
        let Ok(most) = usize::try_from(most) else { return };
        match tokens {
            TokenSet::List(tokens) => {
                let is_short = |token: &&u32| usize::from(self.of[**token as usize]) <= most;
                tokens
                    .iter()
                    .filter(is_short)
                    .for_each(|&token| mask.insert(token));
            }
            TokenSet::Bits(bits) => {
                let mut short = bits.clone();
                match self.at_most.get(most) {
                    Some(at_most) => short.intersect(at_most),
                    None => {
                        let long = self
                            .longer
                            .iter()
                            .take_while(|(length, _)| usize::from(*length) > most);
                        long.for_each(|&(_, token)| short.remove_all(&[token]));
                    }
                }
                mask.unite(&short);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::TokenKind;

    #[test]
    fn tokens_are_picked_by_their_characters() {
        let words = [
            "",
            "a",
            "é",
            "né",
            "\u{1F642}x ",
            &"x".repeat(16),
            &"x".repeat(17),
            &"é".repeat(40),
            "end",
        ]
        .map(String::from);
        let tokens: Vec<(TokenKind, &str)> = words.iter().map(|word| (TokenKind::Text, &word[..])).collect();
        let eos = words.len() as u32 - 1;
        let vocab = Vocabulary::new(&tokens, &[eos]).expect("it is a vocabulary");
        let lengths = TokenLengths::new(&vocab);
        let all: Vec<u32> = (1..eos).collect();
        let mut bits = Mask::empty(vocab.len());
        bits.insert_all(&all);
        for tokens in [TokenSet::List(all.into()), TokenSet::Bits(bits)] {
            for most in [-1, 0, 1, 2, 3, 4, 15, 16, 17, 39, 40, 70_000] {
                let mut mask = Mask::empty(vocab.len());
                lengths.add_shorter(&tokens, most, &mut mask);
                let expected: Vec<u32> = (1..eos)
                    .filter(|&token| words[token as usize].chars().count() as i64 <= most)
                    .collect();
                assert_eq!(mask.iter().collect::<Vec<u32>>(), expected, "{most}");
            }
        }
    }
}
