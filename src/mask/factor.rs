//! What a terminal state allows whatever is below it.
//!
//! For one cursor of a terminal the tokens fall into three groups: *inner* ones stay within the terminal; *escaping*
//! ones leave it at a place where it may end, and their rest has to be matched by the callers; all others are out.
//!
//! ```text
//!   inside a JSON string:   inner    hello   ␠the   \n
//!                           escapes  ok|",   x|"}      (the bar is where the string ends)
//! ```
//!
//! Only the nodes of the trie where an escape begins are kept, by their first byte: a caller that cannot take a byte
//! never looks at the nodes behind it.

use super::set::TokenSet;
use crate::machine::{Cursor, Terminal};
use crate::vocab::Vocabulary;

/// The inner tokens and the escapes of one cursor of a terminal.
#[derive(Debug)]
pub(crate) struct Factor {
    pub(crate) inner: TokenSet,
    /// By first byte the nodes of the trie that a token enters right where the terminal may have ended.
    pub(crate) escapes: Vec<(u8, Box<[u32]>)>,
    /// The nodes where the terminal is complete and cannot go on, each with the bytes up to it: whole keys.
    pub(crate) ends: Vec<(u32, Box<[u8]>)>,
}

impl Factor {
    /// Walks the vocabulary once. O(nodes of the trie that the terminal can reach).
    pub(crate) fn new(terminal: &Terminal, cursor: Cursor, vocab: &Vocabulary) -> Factor {
        let mut walk = Walk {
            terminal,
            vocab,
            cursors: vec![cursor],
            path: Vec::new(),
            marked: 0,
            inner: Vec::new(),
            escapes: vec![Vec::new(); 256],
            ends: Vec::new(),
        };
        walk.run();
        let escapes = walk
            .escapes
            .into_iter()
            .zip(0u8..=255)
            .filter(|(nodes, _)| !nodes.is_empty());
        Factor {
            inner: TokenSet::new(walk.inner, vocab.len()),
            escapes: escapes.map(|(nodes, byte)| (byte, nodes.into())).collect(),
            ends: walk.ends,
        }
    }

    /// The memory that the factor takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let escapes: usize = self.escapes.iter().map(|(_, nodes)| 32 + nodes.len() * 4).sum();
        let ends: usize = self.ends.iter().map(|(_, bytes)| 24 + bytes.len()).sum();
        self.inner.bytes() + escapes + ends
    }
}

struct Walk<'a> {
    terminal: &'a Terminal,
    vocab: &'a Vocabulary,
    /// The cursor at each depth of the current path.
    cursors: Vec<Cursor>,
    /// The node at each depth of the current path, from depth 1.
    path: Vec<u32>,
    /// Nodes of the path up to this depth are already kept as escapes.
    marked: usize,
    inner: Vec<u32>,
    escapes: Vec<Vec<u32>>,
    ends: Vec<(u32, Box<[u8]>)>,
}

impl Walk<'_> {
    fn run(&mut self) {
        let trie = self.vocab.trie();
        let nodes = trie.nodes();
        let mut at = 0;
        while at < nodes.len() {
            let node = &nodes[at];
            let depth = node.depth as usize;
            self.cursors.truncate(depth);
            self.path.truncate(depth - 1);
            self.marked = self.marked.min(depth - 1);
            match self.terminal.next(self.cursors[depth - 1], node.byte) {
                Some(cursor) => {
                    self.cursors.push(cursor);
                    self.path.push(at as u32);
                    self.inner.extend_from_slice(trie.tokens_at(node));
                    if self.terminal.is_accepting(cursor) && self.terminal.is_stuck(cursor) {
                        let bytes = self.path.iter().map(|&node| nodes[node as usize].byte).collect();
                        self.ends.push((at as u32, bytes));
                    }
                    at += 1;
                }
                None => {
                    self.leave(at as u32, depth);
                    at = node.end as usize;
                }
            }
        }
    }

    /// The terminal cannot take the byte of this node: every place on the way where it may have ended is an escape.
    fn leave(&mut self, node: u32, depth: usize) {
        let nodes = self.vocab.trie().nodes();
        let marked = std::mem::replace(&mut self.marked, depth - 1);
        // Depth 1 is left out: a terminal that is complete before the token is the callers' own business.
        for depth in (marked + 1).max(2)..=depth {
            let entered = self.path.get(depth - 1).copied().unwrap_or(node);
            if self.terminal.is_accepting(self.cursors[depth - 1]) {
                self.escapes[nodes[entered as usize].byte as usize].push(entered);
            }
        }
    }
}
