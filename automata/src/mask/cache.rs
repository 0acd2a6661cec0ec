//! The tables that grammars over one vocabulary share: compiled terminals and their terminal masks.
//!
//! `docs/src/caches.md` lists all caches of the library with their keys and bounds.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::end_states::EndStates;
use super::ground::{Ground, VOCABULARY};
use super::set::Mask;
use super::skip::closed::Kept;
use super::terminal::length_mask::LengthMask;
use super::terminal::subtree_mask::{KeySubtreeMask, SubtreeMask};
use super::terminal::terminal_mask::{Entry, TerminalMask};
use super::terminal::token_lengths::TokenLengths;
use super::token_facts::Facts;
use crate::grammar::Regular;
use crate::language::{Automata, CursorId, LanguageId, Terminal, TerminalError};
use crate::limits::Limits;
use crate::pushdown::TerminalSource;
use crate::vocab::Vocabulary;

/// The shared data of one vocabulary: built once, filled lazily, shared by all grammars and threads.
///
/// Data that nearly every grammar needs, such as the inside of a JSON string, is put into a *base* that is
/// never dropped; see [`Tables::primed`]. The rest is bounded: when it exceeds the bound, it is dropped and
/// recomputed as needed. A mask never depends on what is cached.
#[derive(Debug)]
pub struct Tables {
    pub(super) vocab: Arc<Vocabulary>,
    pub(super) horizon: u64,
    pub(super) bound: usize,
    bytes: AtomicUsize,
    pub(super) base: Arc<Base>,
    pub(super) automata: Automata,
    pub(super) terminals: DashMap<u64, Vec<(Regular, Arc<Terminal>)>, FxBuildHasher>,
    pub(super) entries: DashMap<CursorId, Arc<Entry>, FxBuildHasher>,
    pub(super) terminal_masks: DashMap<LanguageId, Arc<TerminalMask>, FxBuildHasher>,
    pub(super) length_masks: DashMap<LanguageId, Arc<LengthMask>, FxBuildHasher>,
    pub(super) subtree_masks: DashMap<SubtreeKey, Arc<SubtreeMask>, FxBuildHasher>,
    pub(super) key_subtree_masks: DashMap<SubtreeKey, Option<Arc<KeySubtreeMask>>, FxBuildHasher>,
    end_states: EndStatesByState,
    /// The facts about the contents of tokens that these tables alone have found; `None` if they share those
    /// of the base.
    own_facts: Option<Facts>,
    /// The closed alphabets of terminals, by terminal number.
    pub(super) closed: DashMap<u64, Arc<Kept>, FxBuildHasher>,
    /// The number of the next trie of rests.
    pub(super) next_trie: AtomicU64,
}

/// The key of a subtree mask: the number of a trie, a node of it, and the language of a state.
pub(super) type SubtreeKey = (u64, Option<u32>, LanguageId);

/// End states by table number and state of the table.
type EndStatesByState = DashMap<(u64, u32), Arc<EndStates>, FxBuildHasher>;

/// The part of the tables of one vocabulary that is never dropped.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) bytes: usize,
    /// All text tokens, computed on first use.
    pub(super) everything: OnceLock<Mask>,
    /// The tokens by number of characters, computed on first use.
    pub(super) lengths: OnceLock<Arc<TokenLengths>>,
    /// The facts about the contents of tokens, each computed on first use.
    pub(super) facts: Arc<Facts>,
    pub(super) terminals: FxHashMap<u64, Vec<(Regular, Arc<Terminal>)>>,
    pub(super) terminal_masks: FxHashMap<LanguageId, Arc<TerminalMask>>,
    pub(super) length_masks: FxHashMap<LanguageId, Arc<LengthMask>>,
    pub(super) subtree_masks: FxHashMap<SubtreeKey, Arc<SubtreeMask>>,
    pub(super) key_subtree_masks: FxHashMap<SubtreeKey, Option<Arc<KeySubtreeMask>>>,
    pub(super) closed: FxHashMap<u64, Arc<Kept>>,
    /// The end states of tokens in the languages of the base, each computed on first use.
    pub(super) end_states: BaseEndStates,
    /// The number of tries of rests in the base.
    pub(super) tries: u64,
}

/// The end states of tokens in languages that are never dropped; they are not dropped either.
#[derive(Debug, Default)]
pub(super) struct BaseEndStates {
    /// The table numbers of these languages.
    pub(super) tables: FxHashSet<u64>,
    known: EndStatesByState,
    bytes: AtomicUsize,
}

impl Base {
    /// Creates an empty base.
    fn new(vocabulary: Arc<Vocabulary>) -> Base {
        Base {
            bytes: 0,
            everything: OnceLock::new(),
            lengths: OnceLock::new(),
            facts: Arc::new(Facts::new(vocabulary)),
            terminals: FxHashMap::default(),
            terminal_masks: FxHashMap::default(),
            length_masks: FxHashMap::default(),
            subtree_masks: FxHashMap::default(),
            key_subtree_masks: FxHashMap::default(),
            closed: FxHashMap::default(),
            end_states: BaseEndStates::default(),
            tries: 0,
        }
    }
}

impl Tables {
    /// Creates empty tables for a vocabulary. `bound` is the maximum number of bytes for terminal masks and
    /// terminals.
    pub fn new(vocab: Arc<Vocabulary>, bound: usize) -> Tables {
        let horizon = vocab
            .trie()
            .nodes()
            .iter()
            .map(|node| u64::from(node.depth))
            .max()
            .unwrap_or(0);
        let base = Arc::new(Base::new(vocab.clone()));
        Tables::over(vocab, horizon, bound, base, Automata::default())
    }

    pub(super) fn over(
        vocab: Arc<Vocabulary>,
        horizon: u64,
        bound: usize,
        base: Arc<Base>,
        automata: Automata,
    ) -> Tables {
        Tables {
            vocab,
            horizon,
            bound,
            bytes: AtomicUsize::new(0),
            next_trie: AtomicU64::new(VOCABULARY + 1 + base.tries),
            base,
            automata,
            terminals: DashMap::default(),
            entries: DashMap::default(),
            terminal_masks: DashMap::default(),
            length_masks: DashMap::default(),
            subtree_masks: DashMap::default(),
            key_subtree_masks: DashMap::default(),
            end_states: DashMap::default(),
            own_facts: None,
            closed: DashMap::default(),
        }
    }

    /// Returns tables with the same base and nothing else cached.
    pub fn fresh(&self) -> Tables {
        Tables::over(
            self.vocab.clone(),
            self.horizon,
            self.bound,
            self.base.clone(),
            self.automata.fresh(),
        )
    }

    /// Returns tables with the same base, apart from all others: nothing that is computed for their grammars
    /// is found by those of other tables, nor the other way round. [`fresh`](Self::fresh) tables still share
    /// what is learned about the base after it was made.
    pub fn apart(&self) -> Tables {
        Tables {
            own_facts: Some(self.base.facts.as_ref().clone()),
            ..self.fresh()
        }
    }

    /// Returns the bytes that these tables take beyond the base.
    pub fn own_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) + self.automata.bytes()
    }

    /// Drops everything beyond the base.
    pub fn forget(&self) {
        self.clear();
        self.bytes.store(0, Ordering::Relaxed);
        self.automata.forget();
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// Returns the bytes that the tables take, without the vocabulary itself.
    pub fn bytes(&self) -> usize {
        let end_states = self.base.end_states.bytes.load(Ordering::Relaxed);
        self.base.bytes + end_states + self.bytes.load(Ordering::Relaxed)
    }

    /// Returns all text tokens that have bytes.
    pub(crate) fn everything(&self) -> &Mask {
        self.base.everything.get_or_init(|| {
            let mut mask = Mask::empty(self.vocab.len());
            mask.insert_all(self.vocab.trie().tokens());
            mask
        })
    }

    /// Returns the tokens by number of characters.
    pub(super) fn lengths(&self) -> &TokenLengths {
        self.base
            .lengths
            .get_or_init(|| Arc::new(TokenLengths::new(&self.vocab)))
    }

    /// Returns the facts about the contents of tokens.
    pub(crate) fn facts(&self) -> &Facts {
        self.own_facts.as_ref().unwrap_or(&self.base.facts)
    }

    /// Returns the end states of the tokens that stay within a language from one of its states.
    pub(crate) fn end_states(&self, terminal: &Terminal, state: u32) -> Arc<EndStates> {
        let key = (terminal.table_number(), state);
        let base = &self.base.end_states;
        let of_base = base.tables.contains(&key.0);
        // Tables that are apart read what the base has, and leave nothing in it.
        let is_base = of_base && self.own_facts.is_none();
        let known = if is_base { &base.known } else { &self.end_states };
        let in_base = || base.known.get(&key).filter(|_| of_base);
        if let Some(known) = known.get(&key).or_else(in_base) {
            return known.clone();
        }
        let found = Arc::new(EndStates::new(terminal, state, &self.vocab));
        let bytes = found.bytes() + 96;
        if is_base {
            base.bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.grow(bytes);
        }
        known.entry(key).or_insert(found).clone()
    }

    /// Returns the closed alphabets of a terminal that earlier walks found; missing ones are recomputed.
    pub(super) fn closed(&self, terminal: &Terminal) -> Arc<Kept> {
        let new = || (CLOSED_BYTES, Arc::default());
        self.known_or((&self.base.closed, &self.closed), terminal.number(), new)
    }

    /// Returns the length of the longest token in bytes.
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Returns the number of nodes up to which walking a subtree is faster than looking up its mask. For the
    /// small vocabularies of tests it is 0, so that the oracle exercises the look-ups.
    pub(super) fn small(&self) -> usize {
        SMALL_SUBTREE.min(self.vocab.trie().nodes().len() / LARGE_TRIE)
    }

    /// Returns the vocabulary's trie as the ground of a walk.
    pub(super) fn ground(&self) -> Ground<'_> {
        Ground {
            trie: self.vocab.trie(),
            number: VOCABULARY,
        }
    }

    /// Returns a number that no other trie has.
    pub(super) fn number(&self) -> u64 {
        self.next_trie.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the value of a key. `find` computes a missing value and its bytes; no lock is held meanwhile,
    /// because `find` may query these tables.
    pub(super) fn known_or<K: Eq + Hash, V: Clone>(
        &self,
        (base, known): (&FxHashMap<K, V>, &DashMap<K, V, FxBuildHasher>),
        key: K,
        find: impl FnOnce() -> (usize, V),
    ) -> V {
        if let Some(known) = base.get(&key) {
            return known.clone();
        }
        if let Some(known) = known.get(&key) {
            return known.clone();
        }
        let (bytes, found) = find();
        self.grow(bytes + 96);
        known.entry(key).or_insert(found).clone()
    }

    pub(super) fn grow(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.bound {
            self.clear();
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }

    fn clear(&self) {
        self.entries.clear();
        self.terminal_masks.clear();
        self.length_masks.clear();
        self.subtree_masks.clear();
        self.key_subtree_masks.clear();
        self.end_states.clear();
        self.closed.clear();
        self.terminals.clear();
    }
}

/// About the bytes that the closed alphabets of a terminal take.
const CLOSED_BYTES: usize = 1 << 10;

/// The number of nodes that can be walked in the time of a look-up.
const SMALL_SUBTREE: usize = 16;

/// In a trie with fewer nodes than this, no subtree counts as small.
const LARGE_TRIE: usize = 1 << 10;

impl TerminalSource for Tables {
    fn terminal(&self, regular: &Regular, limits: &Limits) -> Result<Arc<Terminal>, TerminalError> {
        let hash = regular.structure_hash();
        let find = |list: &Vec<(Regular, Arc<Terminal>)>| {
            let mut same = list.iter().filter(|(known, _)| known == regular);
            same.next().map(|(_, terminal)| terminal.clone())
        };
        if let Some(terminal) = self.base.terminals.get(&hash).and_then(find) {
            return Ok(terminal);
        }
        if let Some(terminal) = self.terminals.get(&hash).and_then(|list| find(&list)) {
            return Ok(terminal);
        }
        let terminal = Arc::new(Terminal::with(regular, &self.automata, limits)?);
        self.grow(terminal.bytes());
        self.terminals
            .entry(hash)
            .or_default()
            .push((regular.clone(), terminal.clone()));
        Ok(terminal)
    }
}
