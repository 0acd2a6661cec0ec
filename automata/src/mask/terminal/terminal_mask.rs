//! The tokens that a terminal state allows, whatever its callers are.
//!
//! For one cursor of a terminal the tokens fall into three groups: *inner* tokens stay within the terminal;
//! *leaving* tokens leave it at a position where it may end, and their rest has to be matched by the callers;
//! all others are not allowed.
//!
//! ```text
//!   inside a JSON string:   inner    hello   ␠the   \n
//!                           exits  ok|",   x|"}      (the bar is where the string ends)
//! ```
//!
//! Exits are grouped by the first byte of the rest. The rests of one byte are turned into a trie on first use
//! by a caller that can read this byte. Inside a JSON string, 1,312 of Llama's tokens exit, with 576
//! different rests.
//!
//! The terminal mask of a state that differs little from another is stored as a difference. In `"na` with the
//! key `name` excluded, everything continues as in any string except for the few tokens that begin with
//! `me"`. Such a terminal mask refers to its *base*, the tokens for which the base is wrong, and the correct
//! entries for those. Near a bound of a counted language, the terminal mask is computed without bounds, and a
//! [`LengthMask`] selects the tokens that are within them.
//!
//! Because equal languages share their terminal masks and similar ones are stored as differences, classes of
//! tokens have not been necessary so far.

use std::sync::{Arc, OnceLock};

use super::length_mask::LengthMask;
use crate::mask::ground::Ground;
use crate::mask::set::TokenSet;
use crate::vocab::{Trie, Vocabulary};

/// The inner tokens and the exits of one cursor of a terminal.
#[derive(Debug)]
pub(crate) struct TerminalMask {
    /// The terminal mask that this one corrects. A base has no base itself.
    pub(crate) base: Option<Arc<TerminalMask>>,
    /// The tokens for which the base is wrong.
    pub(crate) except: Box<[u32]>,
    pub(crate) inner: TokenSet,
    /// The rests of the tokens that leave the terminal, by first byte.
    pub(crate) rests: Box<[Rests]>,
}

/// The rests, after a position where the terminal may have ended, that begin with one byte.
#[derive(Debug)]
pub(crate) struct Rests {
    pub(crate) byte: u8,
    /// The nodes of the vocabulary's trie that are entered with that byte and have large subtrees, which are
    /// walked in place.
    pub(crate) large: Box<[u32]>,
    /// The other such nodes, whose subtrees share most of their rests.
    small: Box<[u32]>,
    trie: OnceLock<Trie>,
    number: u64,
}

/// A subtree with more nodes than this is walked in place.
const LARGE_SUBTREE: u32 = 256;

impl Rests {
    /// Creates the rests that begin with `byte`; `number` is the number of their trie.
    pub(crate) fn new(byte: u8, mut nodes: Vec<u32>, vocab: &Trie, number: u64) -> Rests {
        nodes.sort_unstable();
        nodes.dedup();
        let is_large = |&node: &u32| vocab.nodes()[node as usize].end - node > LARGE_SUBTREE;
        let (large, small): (Vec<u32>, Vec<u32>) = nodes.into_iter().partition(is_large);
        Rests {
            byte,
            large: large.into(),
            small: small.into(),
            trie: OnceLock::new(),
            number,
        }
    }

    /// Returns the trie as the ground of a walk.
    pub(crate) fn ground<'t>(&'t self, vocab: &Trie) -> Ground<'t> {
        Ground {
            trie: self.trie(vocab),
            number: self.number,
        }
    }

    /// Returns the nodes of the vocabulary's trie that are entered with that byte, each after a position
    /// where a word may end.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        self.large.iter().chain(&self.small).map(|&node| node as usize)
    }

    /// Returns the rests below small nodes as a trie; tokens with the same rest end at the same node.
    pub(crate) fn trie(&self, vocab: &Trie) -> &Trie {
        self.trie.get_or_init(|| {
            let mut pairs = Vec::new();
            for &node in &self.small {
                vocab.for_each_below(node as usize, |rest, tokens| {
                    pairs.extend(tokens.iter().map(|&token| (token, rest.to_vec())));
                });
            }
            Trie::new(pairs)
        })
    }
}

/// The terminal mask of a cursor, or its parts near a bound.
#[derive(Debug)]
pub(crate) enum Entry {
    /// No token can reach a bound.
    Unbounded(Arc<TerminalMask>),
    /// The cursor is near a bound of a counted language.
    Bounded(Bounds),
}

/// The mask of a state near a bound of its language.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The terminal mask of the state, ignoring bounds; only its rests are used.
    pub(crate) unbounded: Arc<TerminalMask>,
    /// The inner tokens within the bounds.
    pub(crate) inner: TokenSet,
    /// Decides which rests are out of bounds.
    pub(crate) length_mask: Arc<LengthMask>,
}

impl Entry {
    /// Returns the bytes that the entry takes, without the masks that it shares.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Entry::Unbounded(_) => 64,
            Entry::Bounded(bounds) => 128 + bounds.inner.bytes(),
        }
    }
}

impl TerminalMask {
    /// Builds all tries of rests now.
    pub(crate) fn find_rests(&self, vocab: &Vocabulary) {
        for rests in &self.rests {
            rests.trie(vocab.trie());
        }
    }

    /// Returns the bytes that the terminal mask takes, including an estimate for its tries of rests.
    pub(crate) fn bytes(&self) -> usize {
        let rests = self
            .rests
            .iter()
            .map(|rests| 96 + rests.large.len() * 4 + rests.small.len() * 48);
        96 + self.except.len() * 4 + self.inner.bytes() + rests.sum::<usize>()
    }
}
