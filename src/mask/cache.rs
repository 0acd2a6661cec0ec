//! What grammars over one vocabulary share: compiled terminals and their factors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::factor::Factor;
use crate::grammar::Regular;
use crate::limits::Limits;
use crate::machine::{Cursor, Identity, Terminal, TerminalError, TerminalSource};
use crate::vocab::Vocabulary;

/// The structures of one vocabulary: built once, filled lazily, shared by all grammars and threads.
///
/// The memory is bounded: when the factors pass the bound they are all dropped and found again as they are needed.
/// A mask never depends on what is cached.
#[derive(Debug)]
pub struct Tables {
    vocab: Arc<Vocabulary>,
    horizon: u64,
    bound: usize,
    bytes: AtomicUsize,
    terminals: DashMap<u64, Vec<(Regular, Arc<Terminal>)>, FxBuildHasher>,
    factors: DashMap<Identity, Arc<Factor>, FxBuildHasher>,
}

impl Tables {
    /// Empty tables for a vocabulary; `bound` is the greatest number of bytes for factors and terminals.
    pub fn new(vocab: Arc<Vocabulary>, bound: usize) -> Tables {
        let horizon = vocab
            .trie()
            .nodes()
            .iter()
            .map(|node| u64::from(node.depth))
            .max()
            .unwrap_or(0);
        Tables {
            vocab,
            horizon,
            bound,
            bytes: AtomicUsize::new(0),
            terminals: DashMap::default(),
            factors: DashMap::default(),
        }
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// The memory that the tables take, in bytes; the vocabulary itself is not counted.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The length of the longest token in bytes.
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    pub(crate) fn factor(&self, terminal: &Terminal, cursor: Cursor) -> Arc<Factor> {
        let key = terminal.identity(cursor, self.horizon);
        if let Some(known) = self.factors.get(&key) {
            return known.clone();
        }
        let factor = Arc::new(Factor::new(terminal, cursor, self));
        self.grow(factor.bytes() + 96);
        self.factors.entry(key).or_insert(factor).clone()
    }

    fn grow(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.bound {
            self.factors.clear();
            self.terminals.clear();
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }
}

impl TerminalSource for Tables {
    fn terminal(&self, regular: &Regular, limits: &Limits) -> Result<Arc<Terminal>, TerminalError> {
        let hash = regular.structure_hash();
        let known = self.terminals.get(&hash);
        let known = known.and_then(|list| {
            list.iter()
                .find(|(known, _)| known == regular)
                .map(|(_, t)| t.clone())
        });
        if let Some(terminal) = known {
            return Ok(terminal);
        }
        let terminal = Arc::new(Terminal::new(regular, limits)?);
        self.grow(terminal.bytes());
        self.terminals
            .entry(hash)
            .or_default()
            .push((regular.clone(), terminal.clone()));
        Ok(terminal)
    }
}
