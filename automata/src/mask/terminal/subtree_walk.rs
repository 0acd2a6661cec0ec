//! Computes subtree masks: the tokens that a state of a terminal allows below one node of a trie.

use std::sync::Arc;

use super::subtree_mask::{KeySubtreeMask, SubtreeMask};
use super::terminal_walk::Walk;
use crate::language::{Cursor, Terminal};
use crate::mask::cache::Tables;
use crate::mask::ground::{Ground, children};
use crate::mask::set::TokenSet;
use crate::mask::skip::loops;
use crate::vocab::Trie;
use crate::work::spend;

impl Tables {
    /// Returns the subtree mask of a state below a node of a trie, ignoring bounds.
    pub(crate) fn subtree_mask(
        &self,
        terminal: &Terminal,
        state: u32,
        ground: Ground<'_>,
        top: Option<usize>,
    ) -> Arc<SubtreeMask> {
        let language = terminal.language_ids(false)[state as usize];
        let key = (ground.number, top.map(|node| node as u32), language);
        self.known_or((&self.base.subtree_masks, &self.subtree_masks), key, || {
            let subtree_mask = SubtreeMask::new(terminal, state, ground.trie, top, self.vocab.len());
            (subtree_mask.bytes(), Arc::new(subtree_mask))
        })
    }

    /// Returns the subtree mask of a state of a language of keys, or `None` if its keys have to be read one
    /// by one.
    pub(crate) fn key_subtree_mask(
        &self,
        terminal: &Terminal,
        state: u32,
        ground: Ground<'_>,
        top: Option<usize>,
    ) -> Option<Arc<KeySubtreeMask>> {
        let language = terminal.language_ids(false)[state as usize];
        let key = (ground.number, top.map(|node| node as u32), language);
        self.known_or(
            (&self.base.key_subtree_masks, &self.key_subtree_masks),
            key,
            || {
                let subtree_mask = KeySubtreeMask::new(terminal, state, ground.trie, top, self.vocab.len());
                (
                    subtree_mask.as_ref().map_or(0, KeySubtreeMask::bytes),
                    subtree_mask.map(Arc::new),
                )
            },
        )
    }
}

impl SubtreeMask {
    /// Walks the subtree of the node, or the whole trie. O(nodes that are visited).
    pub(crate) fn new(
        terminal: &Terminal,
        state: u32,
        trie: &Trie,
        top: Option<usize>,
        tokens: usize,
    ) -> SubtreeMask {
        let (inner, exits) = Walk::below(terminal, state, trie, top);
        SubtreeMask {
            inner: TokenSet::quick(inner, tokens),
            exits: exits
                .map(|node| (trie.nodes()[node as usize].byte, node))
                .collect(),
        }
    }
}

impl KeySubtreeMask {
    /// Walks the subtree of the node. Returns `None` if at some node only finitely many keys remain, or if a
    /// key may both end and continue. O(nodes that are visited).
    pub(crate) fn new(
        terminal: &Terminal,
        state: u32,
        trie: &Trie,
        top: Option<usize>,
        tokens: usize,
    ) -> Option<KeySubtreeMask> {
        let (mut inner, mut ends) = (Vec::new(), Vec::new());
        let mut open: Vec<(u32, u32)> = children(trie, top).map(|(_, node)| (node, state)).collect();
        while let Some((node, state)) = open.pop() {
            spend(1);
            let at = node as usize;
            if loops::pass_over(terminal, trie, at, state) {
                inner.extend_from_slice(trie.tokens_below(at));
                continue;
            }
            let Some(next) = terminal.next_state(state, trie.nodes()[at].byte) else {
                continue;
            };
            let cursor = Cursor {
                state: next,
                count: 0,
            };
            match (terminal.is_infinite(cursor), terminal.is_accepting_state(next)) {
                (true, false) => {
                    inner.extend_from_slice(trie.tokens_at(&trie.nodes()[at]));
                    open.extend(children(trie, Some(at)).map(|(_, child)| (child, next)));
                }
                (false, true) if terminal.is_stuck(cursor) => ends.push(node),
                _ => return None,
            }
        }
        ends.sort_unstable();
        let depth = |node: usize| usize::from(trie.nodes()[node].depth);
        let deepest = ends.iter().map(|&node| depth(node as usize)).max();
        let at_end = |&node: &u32| trie.tokens_at(&trie.nodes()[node as usize]);
        let after = |&node: &u32| children(trie, Some(node as usize));
        Some(KeySubtreeMask {
            inner: TokenSet::quick(inner, tokens),
            end_tokens: ends.iter().flat_map(at_end).copied().collect(),
            exits: ends.iter().flat_map(after).collect(),
            longest: deepest.map_or(0, |deepest| deepest - top.map_or(0, depth)),
            ends: ends.into(),
        })
    }
}
