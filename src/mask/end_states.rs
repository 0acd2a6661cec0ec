//! The tokens that stay within a regular language, grouped by the state that they lead to.
//!
//! ```text
//!   inside a string     hello, ␠the, \n, …       to where they came from     100,000 tokens
//!                       \                        behind a backslash
//!                       \u00                     where two digits are missing
//! ```
//!
//! Near the end of a budget all tokens are judged that lead to the same place by one of them. To find out which do takes a walk
//! through the vocabulary, so that who asks keeps it.

use rustc_hash::FxHashMap;

use super::set::TokenSet;
use crate::language::{Cursor, Terminal};
use crate::vocab::Vocabulary;
use crate::work::spend;

/// The set of tokens that stay within a language from one of its states, grouped by where they lead.
#[derive(Debug)]
pub(crate) struct EndStates(Vec<(Cursor, TokenSet)>);

impl EndStates {
    /// Where the tokens lead from a place in the language. O(vocabulary).
    pub(crate) fn new(terminal: &Terminal, cursor: Cursor, vocabulary: &Vocabulary) -> EndStates {
        let trie = vocabulary.trie();
        let mut found: FxHashMap<Cursor, Vec<u32>> = FxHashMap::default();
        let mut path = vec![cursor];
        let mut at = 0;
        while let Some(node) = trie.nodes().get(at) {
            spend(1);
            path.truncate(usize::from(node.depth));
            let next = terminal.next(path[path.len() - 1], node.byte);
            at = next.map_or(node.end as usize, |_| at + 1);
            if let Some(next) = next {
                path.push(next);
                if node.count > 0 {
                    found.entry(next).or_default().extend(trie.tokens_at(node));
                }
            }
        }
        let groups = found.into_iter();
        let groups = groups.map(|(cursor, tokens)| (cursor, TokenSet::new(tokens, vocabulary.len())));
        let mut groups: Vec<_> = groups.collect();
        groups.sort_unstable_by_key(|(cursor, _)| (cursor.state, cursor.count));
        EndStates(groups)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cursor, &TokenSet)> {
        self.0.iter().map(|(cursor, tokens)| (*cursor, tokens))
    }

    /// The memory that they take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, tokens)| tokens.bytes() + 48).sum()
    }
}
