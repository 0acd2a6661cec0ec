//! What readers can read at one depth of a walk, and which children are left to be looked at there.

use std::ops::Range;

use crate::language::ByteSet;
use crate::mask::set::Mask;
use crate::pushdown::Head;
use crate::vocab::{Alphabet, Trie};

/// What can be read at one depth.
#[derive(Default)]
pub(super) struct Level {
    pub(super) readers: Vec<Head>,
    pub(super) ahead: Ahead,
    /// The children that are left to be looked at, by their places.
    places: Range<u32>,
    /// Where few bytes may come, those that are left to be looked for among the places.
    few: Option<ByteSet>,
}

/// What the readers at one depth allow, as far as it is seen without reading on.
#[derive(Clone, Copy, Default)]
pub(super) struct Ahead {
    pub(super) bytes: ByteSet,
    /// The bytes after which a token may end, whatever was written before.
    pub(super) sure: ByteSet,
    /// Characters that lead one of the readers back to where it is.
    pub(super) loops: Alphabet,
}

/// How many times more children than bytes there must be, for the bytes to be looked up and not all children
/// gone through.
const MANY_CHILDREN: u32 = 8;

impl Level {
    /// Begins to look at children.
    pub(super) fn look_at(&mut self, places: Range<u32>) {
        let is_few = self.ahead.bytes.len() * MANY_CHILDREN < places.len() as u32;
        self.few = is_few.then_some(self.ahead.bytes);
        self.places = places;
    }

    /// The next child whose byte may come.
    #[inline]
    pub(super) fn next_child(&mut self, trie: &Trie) -> Option<(u8, usize)> {
        if let Some(few) = &mut self.few {
            while let Some(byte) = few.pop() {
                if let Some(node) = trie.child_behind(self.places.clone(), byte) {
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
    /// Adds the tokens of a node and below it, if it needs no reading to see that all are allowed.
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
