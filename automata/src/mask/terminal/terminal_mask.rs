//! What a terminal state allows whatever is below it.
//!
//! For one cursor of a terminal the tokens fall into three groups: *inner* ones stay within the terminal;
//! *leaving* ones leave it at a place where it may end, and their rest has to be matched by the callers; all
//! others are out.
//!
//! ```text
//!   inside a JSON string:   inner    hello   ␠the   \n
//!                           exits  ok|",   x|"}      (the bar is where the string ends)
//! ```
//!
//! Escapes are kept by the first byte of their rest; those of one byte become a trie of rests when a caller
//! that can take the byte first asks. Inside a JSON string 1,312 of Llama's tokens escape, with 576 different
//! rests.
//!
//! A state that differs little from another is found by its difference. In `"na` with the key `name`
//! excluded, all goes on as in any string, but for the few tokens that continue with `me"`. Such a terminal
//! mask names its *base*, the tokens for which the base must not be believed, and what is true of those. Near
//! a bound of a counted language the terminal mask is found without bounds, and a [`LengthMask`] says which
//! of its tokens are within them.
//!
//! Because equal languages share their terminal masks and similar ones are found by their difference, no
//! classes of tokens were necessary so far.

use std::sync::{Arc, OnceLock};

use super::length_mask::LengthMask;
use crate::mask::ground::Ground;
use crate::mask::set::TokenSet;
use crate::vocab::{Trie, Vocabulary};

/// The inner tokens and the exits of one cursor of a terminal.
#[derive(Debug)]
pub(crate) struct TerminalMask {
    /// The terminal mask that this one corrects; a base has none itself.
    pub(crate) base: Option<Arc<TerminalMask>>,
    /// The tokens for which the base is not to be believed.
    pub(crate) except: Box<[u32]>,
    pub(crate) inner: TokenSet,
    /// By first byte what is left of the tokens that leave the terminal.
    pub(crate) rests: Box<[Rests]>,
}

/// The rests of tokens after a place where the terminal may have ended, as far as they begin with one byte.
#[derive(Debug)]
pub(crate) struct Rests {
    pub(crate) byte: u8,
    /// The nodes of the vocabulary's trie that are entered with that byte and have much below them: their
    /// subtrees serve as they are.
    pub(crate) large: Box<[u32]>,
    /// The others, whose subtrees share most of their rests.
    small: Box<[u32]>,
    trie: OnceLock<Trie>,
    number: u64,
}

/// A subtree with more nodes than this is walked where it is.
const LARGE_SUBTREE: u32 = 256;

impl Rests {
    /// The rests that begin with this byte, whose trie has this number.
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

    /// The trie as the ground of a walk.
    pub(crate) fn ground<'t>(&'t self, vocab: &Trie) -> Ground<'t> {
        Ground {
            trie: self.trie(vocab),
            number: self.number,
        }
    }

    /// The nodes of the vocabulary's trie that are entered with that byte, each after a place where a word
    /// may end.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        self.large.iter().chain(&self.small).map(|&node| node as usize)
    }

    /// The rests below small nodes as a trie; tokens with the same rest end at the same node.
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

/// What is known of a cursor of a terminal.
#[derive(Debug)]
pub(crate) enum Entry {
    /// No token can feel a bound.
    Unbounded(Arc<TerminalMask>),
    /// Near a bound of a counted language.
    Bounded(Bounds),
}

/// A state near a bound of its language.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The state with the bounds left aside; only its rests count.
    pub(crate) unbounded: Arc<TerminalMask>,
    /// The inner tokens within the bounds.
    pub(crate) inner: TokenSet,
    /// What tells which rests are out of bounds.
    pub(crate) length_mask: Arc<LengthMask>,
}

impl Entry {
    /// The memory that the entry takes, in bytes, without what it shares.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Entry::Unbounded(_) => 64,
            Entry::Bounded(bounds) => 128 + bounds.inner.bytes(),
        }
    }
}

impl TerminalMask {
    /// Makes the tries of rests now.
    pub(crate) fn find_rests(&self, vocab: &Vocabulary) {
        for rests in &self.rests {
            rests.trie(vocab.trie());
        }
    }

    /// The memory that the terminal mask takes, in bytes, with its tries of rests once they are made.
    pub(crate) fn bytes(&self) -> usize {
        let rests = self
            .rests
            .iter()
            .map(|rests| 96 + rests.large.len() * 4 + rests.small.len() * 48);
        96 + self.except.len() * 4 + self.inner.bytes() + rests.sum::<usize>()
    }
}
