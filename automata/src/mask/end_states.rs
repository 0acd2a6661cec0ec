//! The tokens that stay within a regular language, grouped by the state that they lead to.
//!
//! ```text
//!   inside a string     hello, ␠the, \n, …       to where they came from     100,000 tokens
//!                       \                        after a backslash
//!                       \u00                     where two digits are missing
//! ```
//!
//! Near the end of a budget, one token is judged for all that lead to the same place. To find out which do
//! takes a walk through the vocabulary: a millisecond inside a string. So it is made without the bounds of a
//! count, by state and number of units, once for all languages that differ in their bounds alone;
//! [`Tables`](super::Tables) keep it.

use rustc_hash::FxHashMap;

use super::set::TokenSet;
use crate::language::{Cursor, Terminal};
use crate::vocab::Vocabulary;
use crate::work::spend;

/// The set of tokens that stay within a language from one of its states, grouped by where they lead, bounds
/// left aside.
#[derive(Debug)]
pub(crate) struct EndStates(Vec<TokenGroup>);

/// The tokens that lead to the same state and end the same number of units.
#[derive(Debug)]
struct TokenGroup {
    state: u32,
    units: u64,
    tokens: TokenSet,
}

impl EndStates {
    /// Where the tokens lead from a state. O(vocabulary).
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

    /// The groups with the cursor that each leads to from this one of a terminal, which stands in their
    /// state. A cursor may come more than once, where units beyond a bound are no longer counted.
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

    /// The memory that they take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|group| group.tokens.bytes() + 48).sum()
    }
}
