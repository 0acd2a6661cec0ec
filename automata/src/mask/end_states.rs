//! The tokens that stay within a regular language, grouped by the state that they lead to.
//!
//! ```text
//!   inside a string     hello, ␠the, \n, …       to where they came from     100,000 tokens
//!                       \                        after a backslash
//!                       \u00                     where two digits are missing
//! ```
//!
//! Near the end of a budget, one token is judged on behalf of all tokens that lead to the same state. Finding
//! out which do takes a walk through the vocabulary: a millisecond inside a string. So the walk ignores the
//! bounds of a count and groups tokens by state and number of units. It is made once for all languages that
//! differ only in their bounds, and [`Tables`](super::Tables) cache the result.

use rustc_hash::FxHashMap;

use super::set::TokenSet;
use crate::language::{Cursor, Terminal};
use crate::vocab::Vocabulary;
use crate::work::spend;

/// The tokens that stay within a language from one of its states, ignoring bounds, grouped by the state that
/// they lead to.
#[derive(Debug)]
pub(crate) struct EndStates(Vec<TokenGroup>);

/// Tokens that lead to the same state and complete the same number of units.
#[derive(Debug)]
struct TokenGroup {
    state: u32,
    units: u64,
    tokens: TokenSet,
}

impl EndStates {
    /// Groups the tokens that stay within the terminal from a state. O(vocabulary).
    pub(super) fn new(terminal: &Terminal, state: u32, vocabulary: &Vocabulary) -> EndStates {
        let trie = vocabulary.trie();
        let mut found: FxHashMap<(u32, u64), Vec<u32>> = FxHashMap::default();
        let mut path = vec![(state, 0)];
        let mut at = 0;
        while let Some(node) = trie.nodes().get(at) {
            spend(1);
            path.truncate(usize::from(node.depth));
            let (state, units) = path[path.len() - 1];
            let next = terminal.next_unit(state, node.byte);
            at = next.map_or(node.end as usize, |_| at + 1);
            if let Some((state, ends)) = next {
                let next = (state, units + u64::from(ends));
                path.push(next);
                if node.count > 0 {
                    found.entry(next).or_default().extend(trie.tokens_at(node));
                }
            }
        }
        let groups = found.into_iter().map(|((state, units), tokens)| TokenGroup {
            state,
            units,
            tokens: TokenSet::new(tokens, vocabulary.len()),
        });
        let mut groups: Vec<_> = groups.collect();
        groups.sort_unstable_by_key(|group| (group.state, group.units));
        EndStates(groups)
    }

    /// Returns the groups, each with the cursor that it leads to from `cursor`, which must be in the state
    /// that the groups start from. A cursor may occur more than once if units beyond a bound are no longer
    /// counted.
    pub(crate) fn from<'a>(
        &'a self,
        terminal: &'a Terminal,
        cursor: Cursor,
    ) -> impl Iterator<Item = (Cursor, &'a TokenSet)> {
        self.0.iter().filter_map(move |group| {
            let end = terminal.after_units(cursor, group.state, group.units)?;
            Some((end, &group.tokens))
        })
    }

    /// Returns the bytes that the groups take.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|group| group.tokens.bytes() + 48).sum()
    }
}
