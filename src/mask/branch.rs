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

use super::factor;
use crate::machine::Terminal;
use crate::vocab::Trie;

/// A trie with the number by which the tables know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'t> {
    pub(crate) trie: &'t Trie,
    pub(super) number: u64,
}

/// The number of the vocabulary's trie.
pub(super) const VOCABULARY: u64 = 0;

/// The tokens below a node that stay within a terminal, and the ways out.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(super) inner: Box<[u32]>,
    /// The nodes that are entered behind a place where the terminal may have ended, with their bytes.
    pub(super) exits: Box<[(u8, u32)]>,
}

impl Branch {
    /// Walks what is below the node, or the whole trie. O(nodes that are visited).
    pub(super) fn new(terminal: &Terminal, state: u32, trie: &Trie, top: Option<usize>) -> Branch {
        let (inner, exits) = factor::Walk::below(terminal, state, trie, top);
        Branch {
            inner: inner.into(),
            exits: exits
                .map(|node| (trie.nodes()[node as usize].byte, node))
                .collect(),
        }
    }

    /// The memory that the branch takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        96 + self.inner.len() * 4 + self.exits.len() * 8
    }
}
