//! The tokens that a terminal state allows below one node of a trie, whatever its callers are.
//!
//! When a walk of threads reaches a terminal, many walks have been there before: after `"` at the beginning
//! of a value every schema is inside a string and goes through the same hundreds of nodes. A subtree mask is
//! the terminal mask of the state for one subtree, computed once and shared like terminal masks; the walk
//! continues only where the terminal may have ended.
//!
//! ```text
//!   after   ␠"          inner   ␠"hello   ␠"{    ␠"(\"…
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
    /// Returns the bytes that the subtree mask takes.
    pub(crate) fn bytes(&self) -> usize {
        96 + self.inner.bytes() + self.exits.len() * 8
    }
}

/// The subtree mask of a key in progress. Which keys may not be written again differs from mask to mask, so
/// the ends of keys are stored separately from the tokens that stay within a key.
#[derive(Debug)]
pub(crate) struct KeySubtreeMask {
    /// The tokens after which infinitely many keys remain possible.
    pub(crate) inner: TokenSet,
    /// The nodes after which a key is complete and can be followed only by its item.
    pub(crate) ends: Box<[u32]>,
    /// The greatest number of bytes from the top node of the subtree mask to an end.
    pub(crate) longest: usize,
    /// The tokens at all ends.
    pub(crate) end_tokens: Box<[u32]>,
    /// The children of all ends.
    pub(crate) exits: Exits,
}

impl KeySubtreeMask {
    /// Returns the bytes that the subtree mask takes.
    pub(crate) fn bytes(&self) -> usize {
        128 + self.inner.bytes() + (self.ends.len() + self.end_tokens.len()) * 4 + self.exits.len() * 8
    }
}
