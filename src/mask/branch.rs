//! What a terminal state allows below a node of a trie, whatever is below it in the grammar.
//!
//! A walk of threads that comes to a terminal comes to where many walks have been: behind `"` at the beginning of a value
//! every schema is inside a string, and goes through the same hundreds of nodes. A branch is the factor of the state for
//! one subtree, found once and shared like factors; the walk goes on only where the terminal may have ended.
//!
//! ```text
//!   behind  ␠"          inner   ␠"hello   ␠"{    ␠"(\"…
//!                       exits   ␠"│"   ␠"│",   ␠"x│"       (the bar is where the string ends)
//! ```

use std::sync::Arc;

use super::set::TokenSet;
use super::{factor, loops};
use crate::machine::{Cursor, Terminal};
use crate::vocab::Trie;
use crate::work::spend;

/// A trie with the number by which the tables know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'t> {
    pub(crate) trie: &'t Trie,
    pub(super) number: u64,
}

/// The number of the vocabulary's trie.
pub(super) const VOCABULARY: u64 = 0;

/// The nodes that are entered behind a place where something may have ended, with their bytes.
pub(super) type Exits = Arc<[(u8, u32)]>;

/// The tokens below a node that stay within a terminal, and the ways out.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(super) inner: TokenSet,
    pub(super) exits: Exits,
}

impl Branch {
    /// Walks what is below the node, or the whole trie. O(nodes that are visited).
    pub(super) fn new(
        terminal: &Terminal,
        state: u32,
        trie: &Trie,
        top: Option<usize>,
        tokens: usize,
    ) -> Branch {
        let (inner, exits) = factor::Walk::below(terminal, state, trie, top);
        Branch {
            inner: TokenSet::quick(inner, tokens),
            exits: exits
                .map(|node| (trie.nodes()[node as usize].byte, node))
                .collect(),
        }
    }

    /// The memory that the branch takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        96 + self.inner.bytes() + self.exits.len() * 8
    }
}

/// The same for a key in progress. Which keys may not be written again differs from mask to mask, so that the ends of
/// keys are kept apart from what stays within one.
#[derive(Debug)]
pub(crate) struct KeyBranch {
    /// The tokens behind which endlessly many keys go on.
    pub(super) inner: TokenSet,
    /// The nodes behind which a key is complete, and can only be followed by its item.
    pub(super) ends: Box<[u32]>,
    /// The most bytes from the node of the branch to one of these.
    pub(super) longest: usize,
    /// The tokens at all ends.
    pub(super) end_tokens: Box<[u32]>,
    /// The children of all ends.
    pub(super) exits: Exits,
}

impl KeyBranch {
    /// Walks what is below the node. `None` if somewhere keys are left that can be counted, or a key may both end and go
    /// on. O(nodes that are visited).
    pub(super) fn new(
        terminal: &Terminal,
        state: u32,
        trie: &Trie,
        top: Option<usize>,
        tokens: usize,
    ) -> Option<KeyBranch> {
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
        let behind = |&node: &u32| children(trie, Some(node as usize));
        Some(KeyBranch {
            inner: TokenSet::quick(inner, tokens),
            end_tokens: ends.iter().flat_map(at_end).copied().collect(),
            exits: ends.iter().flat_map(behind).collect(),
            longest: deepest.map_or(0, |deepest| deepest - top.map_or(0, depth)),
            ends: ends.into(),
        })
    }

    /// The memory that the branch takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        128 + self.inner.bytes() + (self.ends.len() + self.end_tokens.len()) * 4 + self.exits.len() * 8
    }
}

/// The children of a node, or of the root, with their bytes.
pub(super) fn children(trie: &Trie, node: Option<usize>) -> impl Iterator<Item = (u8, u32)> + '_ {
    trie.children(node).map(|place| trie.child(place))
}
