//! Tokens by their places in trie order.

use std::ops::Range;

use crate::mask::cache::Tables;
use crate::mask::set::TokenSet;

/// Tokens by their places in trie order, in which the tokens of a subtree are adjacent.
#[derive(Default)]
pub(crate) struct Places {
    pub(super) ranges: Vec<Range<u32>>,
    count: usize,
}

impl Places {
    /// Adds places that come after all places added before.
    pub(crate) fn add(&mut self, range: Range<u32>) {
        self.count += range.len();
        match self.ranges.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }

    /// Converts the places to a set. If it holds most tokens, it is built by removing the others from the set
    /// of all.
    pub(crate) fn into_set(self, tables: &Tables) -> TokenSet {
        let vocab = tables.vocabulary();
        let tokens = vocab.trie().tokens();
        let at = |range: &Range<u32>| &tokens[range.start as usize..range.end as usize];
        if self.count * 2 < tokens.len() {
            return TokenSet::of(self.count, self.ranges.iter().map(at), vocab.len());
        }
        let mut mask = tables.everything().clone();
        let mut end = 0;
        for range in self.ranges.iter().chain([&(tokens.len() as u32..0)]) {
            mask.remove_all(at(&(end..range.start)));
            end = range.end;
        }
        TokenSet::Bits(mask)
    }
}
