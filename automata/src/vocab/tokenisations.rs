//! All ways to spell a text in the tokens of a vocabulary.
//!
//! A tokenizer writes one of them, the *canonical* one, but a model gives all of them some probability, so
//! the probability of a text is a sum over token sequences. They are the paths of a graph over the positions
//! in the text:
//!
//! ```text
//!   "the"   0 ─t─► 1 ─h─► 2 ─e─► 3        t h e,  t he,  th e,  the
//!           │      └──── he ────►│
//!           ├──── th ───► 2      │
//!           └────────  the  ────►┘
//! ```
//!
//! Their number grows exponentially with the text, so callers should check it before listing them. Both
//! counts are computed on the graph, in time linear in its edges.

use super::Vocabulary;

/// A token, and the position in the text after it.
#[derive(Clone, Copy, Debug)]
struct TokenEdge {
    token: u32,
    end: usize,
}

/// The token sequences that spell a text from its beginning to its end.
#[derive(Clone, Debug)]
pub struct Tokenisations {
    /// For each position in the text, the tokens that begin there in at least one sequence.
    edges: Vec<Vec<TokenEdge>>,
}

impl Vocabulary {
    /// Returns all ways to spell this text in text tokens. O(text · longest token).
    #[doc(hidden)]
    pub fn tokenisations(&self, text: &[u8]) -> Tokenisations {
        let mut edges: Vec<Vec<TokenEdge>> = vec![Vec::new(); text.len()];
        let mut leads_to_the_end = vec![false; text.len() + 1];
        leads_to_the_end[text.len()] = true;
        for place in (0..text.len()).rev() {
            for (length, tokens) in self.trie().prefixes(&text[place..]) {
                let end = place + length;
                if leads_to_the_end[end] {
                    edges[place].extend(tokens.iter().map(|&token| TokenEdge { token, end }));
                }
            }
            leads_to_the_end[place] = !edges[place].is_empty();
        }
        if !leads_to_the_end[0] {
            edges.iter_mut().for_each(Vec::clear);
        }
        Tokenisations { edges }
    }
}

impl Tokenisations {
    /// Returns the number of sequences: one for the empty text, zero for a text that the vocabulary cannot
    /// write. Saturates at `usize::MAX`.
    pub fn count(&self) -> usize {
        self.prefixes_to().last().copied().unwrap_or(1)
    }

    /// Returns the number of distinct non-empty prefixes of the sequences, which are the nodes of the prefix
    /// tree of all of them.
    pub fn prefixes(&self) -> usize {
        let prefixes = self.prefixes_to();
        let nodes = prefixes.get(1..).unwrap_or_default().iter();
        nodes.fold(0, |sum: usize, &count| sum.saturating_add(count))
    }

    /// Returns, for each position, the number of sequences that lead to it.
    fn prefixes_to(&self) -> Vec<usize> {
        let mut counts = vec![0_usize; self.edges.len() + 1];
        counts[0] = 1;
        for (place, edges) in self.edges.iter().enumerate() {
            for edge in edges {
                counts[edge.end] = counts[edge.end].saturating_add(counts[place]);
            }
        }
        counts
    }

    /// Returns an iterator over the sequences. Each takes time linear in its tokens; [`count`](Self::count)
    /// returns how many there are.
    pub fn iter(&self) -> impl Iterator<Item = Vec<u32>> + '_ {
        let mut next = self.is_possible().then(|| self.first_from(Vec::new()));
        std::iter::from_fn(move || {
            let path = next.take()?;
            let tokens = self.tokens(&path);
            next = self.after(path);
            Some(tokens)
        })
    }

    fn is_possible(&self) -> bool {
        self.edges.first().is_none_or(|edges| !edges.is_empty())
    }

    /// Returns the path that begins with these choices and then takes the first edge at each position. A path
    /// consists of the position of each of its tokens and the index of its edge there.
    fn first_from(&self, mut path: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
        let mut place = path
            .last()
            .map_or(0, |&(place, edge)| self.edges[place][edge].end);
        while place < self.edges.len() {
            path.push((place, 0));
            place = self.edges[place][0].end;
        }
        path
    }

    /// Returns the next path: the last choice that has an alternative is changed.
    fn after(&self, mut path: Vec<(usize, usize)>) -> Option<Vec<(usize, usize)>> {
        while let Some((place, edge)) = path.pop() {
            if edge + 1 < self.edges[place].len() {
                path.push((place, edge + 1));
                return Some(self.first_from(path));
            }
        }
        None
    }

    fn tokens(&self, path: &[(usize, usize)]) -> Vec<u32> {
        let token = |&(place, edge): &(usize, usize)| self.edges[place][edge].token;
        path.iter().map(token).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::vocab::{TokenKind, Vocabulary};
    use std::collections::BTreeSet;

    /// Returns a vocabulary in which two tokens write `a` and none writes `x`.
    fn vocabulary() -> Vocabulary {
        let tokens = ["a", "b", "ab", "ba", "aba", "a", "abab", "<end>"];
        let kinded = tokens.map(|token| match token {
            "<end>" => (TokenKind::Special, token),
            _ => (TokenKind::Text, token),
        });
        Vocabulary::new(&kinded, &[7]).expect("eight tokens")
    }

    /// Returns all token sequences that spell a text, found by exhaustive search.
    fn tried(vocabulary: &Vocabulary, text: &[u8]) -> BTreeSet<Vec<u32>> {
        let (mut found, mut open) = (BTreeSet::new(), vec![Vec::new()]);
        while let Some(tokens) = open.pop() {
            let written: Vec<u8> = tokens
                .iter()
                .flat_map(|&token| vocabulary.bytes(token))
                .copied()
                .collect();
            if written == text {
                found.insert(tokens);
            } else if text.starts_with(&written) {
                open.extend((0..7).map(|token| [&tokens[..], &[token]].concat()));
            }
        }
        found
    }

    #[test]
    fn they_are_those_that_spell_the_text() {
        let vocabulary = vocabulary();
        for text in [
            "",
            "a",
            "ab",
            "abab",
            "bbaab",
            "ababababa",
            "x",
            "ax",
            "xa",
            "abxab",
        ] {
            let tokenisations = vocabulary.tokenisations(text.as_bytes());
            let listed: Vec<Vec<u32>> = tokenisations.iter().collect();
            let expected = tried(&vocabulary, text.as_bytes());
            assert_eq!(listed.len(), tokenisations.count(), "{text}");
            assert_eq!(
                listed.iter().cloned().collect::<BTreeSet<_>>(),
                expected,
                "{text}"
            );
            assert_eq!(listed.len(), expected.len(), "{text}: none comes twice");
            let prefixes = |tokens: &Vec<u32>| {
                (1..=tokens.len())
                    .map(|end| tokens[..end].to_vec())
                    .collect::<Vec<_>>()
            };
            let nodes: BTreeSet<Vec<u32>> = expected.iter().flat_map(prefixes).collect();
            assert_eq!(tokenisations.prefixes(), nodes.len(), "{text}");
        }
    }

    #[test]
    fn numbers_that_are_too_large_saturate() {
        let text = "ab".repeat(200);
        let tokenisations = vocabulary().tokenisations(text.as_bytes());
        assert_eq!(
            (tokenisations.count(), tokenisations.prefixes()),
            (usize::MAX, usize::MAX)
        );
        assert!(tokenisations.iter().take(3).all(|tokens| tokens.len() > 50));
    }
}
