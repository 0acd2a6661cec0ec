//! A walk of threads through a trie.
//!
//! The trie is that of the vocabulary, or a small one of rests behind a terminal. A node is entered if some thread
//! can take its byte; a subtree that none can enter is passed over.

use std::ops::Range;

use super::set::Mask;
use crate::machine::{ByteSet, Stacks, Thread, Threads};
use crate::vocab::{Node, Trie};

/// What is kept from node to node, and from walk to walk of one mask.
pub(super) struct Walk<'a> {
    pub(super) threads: Threads<'a>,
    path: Vec<u8>,
    levels: Vec<Level>,
    next: Vec<Thread>,
}

/// What can be read at one depth.
#[derive(Default)]
struct Level {
    readers: Vec<Thread>,
    bytes: ByteSet,
}

impl<'a> Walk<'a> {
    pub(super) fn new(stacks: &'a Stacks) -> Walk<'a> {
        Walk {
            threads: Threads::new(stacks),
            path: Vec::new(),
            levels: Vec::new(),
            next: Vec::new(),
        }
    }

    /// The bytes that these readers may take.
    pub(super) fn bytes(&self, readers: &[Thread]) -> ByteSet {
        let mut bytes = ByteSet::default();
        for reader in readers {
            self.threads.add_bytes(reader, &mut bytes);
        }
        bytes
    }

    /// Adds the tokens of a range of siblings and their subtrees that the readers allow. Tokens of which only their
    /// own bytes can tell are put into `lost` instead.
    pub(super) fn tokens(
        &mut self,
        trie: &Trie,
        range: Range<usize>,
        readers: &[Thread],
        mask: &mut Mask,
        lost: &mut Vec<u32>,
    ) {
        let Some(first) = trie.nodes().get(range.start) else {
            return;
        };
        let base = usize::from(first.depth);
        self.path.clear();
        let bytes = self.bytes(readers);
        self.set_level(0, readers, bytes);
        let mut at = range.start;
        while at < range.end {
            let node = &trie.nodes()[at];
            let depth = usize::from(node.depth) - base;
            at = match self.enter(node, depth) {
                false => node.end as usize,
                true => {
                    mask.insert_all(trie.tokens_at(node));
                    self.descend(trie, at, depth, lost)
                }
            };
        }
    }

    /// Reads the byte of a node; whether some thread could.
    fn enter(&mut self, node: &Node, depth: usize) -> bool {
        let level = &self.levels[depth];
        if !level.bytes.contains(node.byte) {
            return false;
        }
        self.path.truncate(depth);
        self.path.push(node.byte);
        self.threads.step(&level.readers, &self.path, &mut self.next);
        !self.next.is_empty()
    }

    /// Makes the level below a node that was entered; where the walk goes on.
    fn descend(&mut self, trie: &Trie, at: usize, depth: usize, lost: &mut Vec<u32>) -> usize {
        let end = trie.nodes()[at].end as usize;
        if end == at + 1 {
            return end;
        }
        if self.levels.len() == depth + 1 {
            self.levels.push(Level::default());
        }
        let mut readers = std::mem::take(&mut self.levels[depth + 1].readers);
        self.threads.expand(&self.next, &self.path, &mut readers);
        self.levels[depth + 1].bytes = self.bytes(&readers);
        self.levels[depth + 1].readers = readers;
        if self.threads.take_lost() {
            lost.extend_from_slice(trie.tokens_below(at));
            return end;
        }
        at + 1
    }

    /// Whether a reader allows these bytes; `None` if threads cannot tell.
    pub(super) fn allows(&mut self, reader: Thread, bytes: &[u8]) -> Option<bool> {
        let mut readers = vec![reader];
        self.path.clear();
        for (at, &byte) in bytes.iter().enumerate() {
            self.path.push(byte);
            self.threads.step(&readers, &self.path, &mut self.next);
            if at + 1 < bytes.len() {
                self.threads.expand(&self.next, &self.path, &mut readers);
                if self.threads.take_lost() {
                    return None;
                }
            }
        }
        Some(!self.next.is_empty())
    }

    fn set_level(&mut self, depth: usize, readers: &[Thread], bytes: ByteSet) {
        if self.levels.len() == depth {
            self.levels.push(Level::default());
        }
        self.levels[depth].readers.clear();
        self.levels[depth].readers.extend_from_slice(readers);
        self.levels[depth].bytes = bytes;
    }
}
