//! What a terminal state allows below a node of a trie, whatever is below it in the grammar.
//!
//! A walk of threads that comes to a terminal comes to where many walks have been: after `"` at the beginning
//! of a value every schema is inside a string, and goes through the same hundreds of nodes. A subtree mask is
//! the terminal mask of the state for one subtree, found once and shared like terminal masks; the walk goes
//! on only where the terminal may have ended.
//!
//! ```text
//!   behind  ␠"          inner   ␠"hello   ␠"{    ␠"(\"…
//!                       exits   ␠"│"   ␠"│",   ␠"x│"       (the bar is where the string ends)
//! ```

use crate::mask::ground::Exits;
use crate::mask::set::TokenSet;

/// The tokens below one node of a trie that stay within a terminal, and the nodes where they leave it.
#[derive(Debug)]
pub(crate) struct SubtreeMask {
    pub(crate) inner: TokenSet,
    pub(crate) exits: Exits,
}

impl SubtreeMask {
    /// The memory that the subtree mask takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        96 + self.inner.bytes() + self.exits.len() * 8
    }
}

/// The same for a key in progress. Which keys may not be written again differs from mask to mask, so that the
/// ends of keys are kept apart from what stays within one.
#[derive(Debug)]
pub(crate) struct KeySubtreeMask {
    /// The tokens after which endlessly many keys go on.
    pub(crate) inner: TokenSet,
    /// The nodes after which a key is complete, and can only be followed by its item.
    pub(crate) ends: Box<[u32]>,
    /// The most bytes from the node of the subtree mask to one of these.
    pub(crate) longest: usize,
    /// The tokens at all ends.
    pub(crate) end_tokens: Box<[u32]>,
    /// The children of all ends.
    pub(crate) exits: Exits,
}

impl KeySubtreeMask {
    /// The memory that the subtree mask takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        128 + self.inner.bytes() + (self.ends.len() + self.end_tokens.len()) * 4 + self.exits.len() * 8
    }
}
