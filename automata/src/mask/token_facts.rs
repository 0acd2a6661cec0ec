//! Facts about the bytes within the tokens of a vocabulary: how far one token can look into what follows.
//!
//! ```text
//!   "},{"      holds between quotes     "},{"
//!              after , and "            –
//!   ,"\\        after , and "            \\
//! ```
//!
//! Of Llama's 128,000 tokens, three dozen contain part of the text between the quotes after a comma, and none
//! of them a letter. Each fact is computed once, in one pass over the vocabulary.

use std::sync::Arc;

use dashmap::DashMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::language::ByteSet;
use crate::pushdown::{KeySet, TokenFacts};
use crate::vocab::Vocabulary;

/// The maximum number of texts between two bytes that are stored.
const MOST_TEXTS: usize = 1 << 12;

/// The maximum number of counts that are stored.
const MOST_COUNTS: usize = 1 << 10;

/// The texts between two bytes, unless there are too many.
type TextsBetween = Option<Arc<KeySet>>;

/// The contents of the tokens of a vocabulary, each fact computed on first use.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    vocabulary: Arc<Vocabulary>,
    after: DashMap<(ByteSet, u8), ByteSet, FxBuildHasher>,
    texts: DashMap<(u8, u8), TextsBetween, FxBuildHasher>,
    most: DashMap<ByteSet, usize, FxBuildHasher>,
}

impl TokenFacts for Facts {
    fn after(&self, before: &ByteSet, opening: u8) -> ByteSet {
        let key = (*before, opening);
        let known = &self.after;
        if let Some(known) = known.get(&key) {
            return *known;
        }
        let mut after = ByteSet::default();
        for token in self.tokens() {
            let seen = token.iter().position(|&byte| before.contains(byte));
            let seen = seen.map_or(&[][..], |at| &token[at + 1..]);
            for pair in seen.windows(2).filter(|pair| pair[0] == opening) {
                after.insert_range(pair[1], pair[1]);
            }
        }
        *known.entry(key).or_insert(after)
    }

    fn texts(&self, opening: u8, closing: u8) -> TextsBetween {
        let known = &self.texts;
        if let Some(known) = known.get(&(opening, closing)) {
            return known.clone();
        }
        let mut texts: FxHashSet<&[u8]> = FxHashSet::default();
        for token in self.tokens() {
            let places = |byte: u8| (0..token.len()).filter(move |&at| token[at] == byte);
            for first in places(opening) {
                texts.extend(
                    places(closing)
                        .filter(|&last| last > first)
                        .map(|last| &token[first..=last]),
                );
            }
            if texts.len() > MOST_TEXTS {
                break;
            }
        }
        let few = texts.len() <= MOST_TEXTS;
        let texts = few.then(|| Arc::new(KeySet::new(texts.into_iter().collect())));
        known.entry((opening, closing)).or_insert(texts).clone()
    }

    fn most(&self, bytes: &ByteSet) -> usize {
        let known = &self.most;
        if let Some(known) = known.get(bytes) {
            return *known;
        }
        let count = |token: &[u8]| token.iter().filter(|&&byte| bytes.contains(byte)).count();
        let most = self.tokens().map(count).max().unwrap_or(0);
        if known.len() >= MOST_COUNTS {
            known.clear();
        }
        *known.entry(*bytes).or_insert(most)
    }

    fn begins(&self, text: &[u8]) -> bool {
        self.vocabulary.trie().find(text).is_some()
    }
}

impl Facts {
    /// Creates an empty set of facts.
    pub(super) fn new(vocabulary: Arc<Vocabulary>) -> Facts {
        Facts {
            vocabulary,
            after: DashMap::default(),
            texts: DashMap::default(),
            most: DashMap::default(),
        }
    }

    /// Returns the bytes of all text tokens.
    fn tokens(&self) -> impl Iterator<Item = &[u8]> {
        let tokens = self.vocabulary.trie().tokens().iter();
        tokens.map(|&token| self.vocabulary.bytes(token))
    }
}
