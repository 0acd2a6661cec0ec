//! One depth of a walk: its readers, and the children that remain to be visited.

use std::ops::Range;

use crate::language::ByteSet;
use crate::mask::set::Mask;
use crate::pushdown::Head;
use crate::vocab::{Alphabet, Trie};

/// The state of a walk at one depth.
#[derive(Default)]
pub(super) struct Level {
    pub(super) readers: Vec<Head>,
    pub(super) ahead: Ahead,
    /// The children that remain to be visited, by position.
    places: Range<u32>,
    /// If few bytes are allowed: those that remain to be looked up among the children.
    few: Option<ByteSet>,
}

/// The bytes that the readers at one depth allow, as far as known without reading further.
#[derive(Clone, Copy, Default)]
pub(super) struct Ahead {
    pub(super) bytes: ByteSet,
    /// The bytes after which a token may end, whatever was written before.
    pub(super) sure: ByteSet,
    /// Characters that lead one of the readers back to the same place.
    pub(super) loops: Alphabet,
}

/// The ratio of children to allowed bytes above which the bytes are looked up instead of scanning all
/// children.
const MANY_CHILDREN: u32 = 8;

impl Level {
    /// Starts to visit these children.
    pub(super) fn look_at(&mut self, places: Range<u32>) {
        let is_few = self.ahead.bytes.len() * MANY_CHILDREN < places.len() as u32;
        self.few = is_few.then_some(self.ahead.bytes);
        self.places = places;
    }

    /// Returns the next child whose byte is allowed.
    #[inline]
    pub(super) fn next_child(&mut self, trie: &Trie) -> Option<(u8, usize)> {
        if let Some(few) = &mut self.few {
            while let Some(byte) = few.pop() {
                if let Some(node) = trie.child_after(self.places.clone(), byte) {
                    return Some((byte, node as usize));
                }
            }
            return None;
        }
        for place in self.places.by_ref() {
            let (byte, node) = trie.child(place);
            if self.ahead.bytes.contains(byte) {
                return Some((byte, node as usize));
            }
        }
        None
    }
}

impl Ahead {
    /// Adds the tokens of a node and its subtree, if all are allowed for certain without reading. Returns
    /// `true` if no reading is needed.
    #[inline]
    pub(super) fn settles(&self, trie: &Trie, (byte, node): (u8, usize), mask: &mut Mask) -> bool {
        if self.loops != 0 && trie.alphabet(node) & !self.loops == 0 {
            mask.insert_all(trie.tokens_below(node));
            return true;
        }
        let known = &trie.nodes()[node];
        let settled = known.end as usize == node + 1 && self.sure.contains(byte);
        if settled {
            mask.insert_all(trie.tokens_at(known));
        }
        settled
    }
}
