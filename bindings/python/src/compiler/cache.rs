//! The cache of the most recently requested grammars, within a bound of bytes.

use lexiform::grammar::GrammarOptions;
use lexiform::regex::Dialect;
use lexiform_syntax::schema;
use lru::LruCache;

use crate::grammar::Grammar;

/// The key of a cached grammar: its source and its prefix.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) source: OwnedSource,
    /// The bytes that precede every text.
    pub(super) prefix: Vec<u8>,
}

/// A source with the options of its kind.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum OwnedSource {
    Schema(String, schema::Options),
    Regex(String, Dialect),
    Ebnf(String),
    Grammar(String, GrammarOptions),
    Choice(Vec<String>),
    StructuralTag(String, Dialect, schema::Options),
    Any,
}

impl OwnedSource {
    /// Combines this source with a prefix.
    pub(super) fn behind(self, prefix: Option<&[u8]>) -> Asked {
        Asked {
            source: self,
            prefix: prefix.unwrap_or_default().to_vec(),
        }
    }
}

/// A map from sources to grammars.
pub(super) struct Cache {
    grammars: LruCache<Asked, Grammar>,
    /// Their bytes when they were last counted; a grammar grows while it is used.
    bytes: usize,
    /// The number of grammars added since then.
    uncounted: usize,
}

/// All grammars are counted again after this many new ones.
const COUNTED_AFTER: usize = 256;

impl Cache {
    pub(super) fn new() -> Cache {
        Cache {
            grammars: LruCache::unbounded(),
            bytes: 0,
            uncounted: 0,
        }
    }

    /// Returns the grammar of a source that was compiled before.
    pub(super) fn get(&mut self, asked: &Asked) -> Option<Grammar> {
        self.grammars.get(asked).map(Grammar::handle)
    }

    /// Adds a grammar. If all take more than `most` bytes, the least recently requested ones are removed
    /// until an eighth of it is free, so that the next grammars need no count.
    pub(super) fn keep(&mut self, asked: Asked, grammar: Grammar, most: usize) {
        self.bytes += grammar.bytes();
        self.uncounted += 1;
        self.grammars.put(asked, grammar);
        if self.bytes <= most && self.uncounted < COUNTED_AFTER {
            return;
        }
        self.uncounted = 0;
        self.bytes = self.grammars.iter().map(|(_, grammar)| grammar.bytes()).sum();
        if self.bytes <= most {
            return;
        }
        while self.bytes > most - most / 8 {
            let Some((_, oldest)) = self.grammars.pop_lru() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }

    /// Removes all grammars.
    pub(super) fn clear(&mut self) {
        self.grammars.clear();
        self.bytes = 0;
    }

    /// Returns the number of grammars.
    pub(super) fn len(&self) -> usize {
        self.grammars.len()
    }
}
