//! What grammars over one vocabulary share: compiled terminals and their factors.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::branch::{Branch, Ground, KeyBranch, VOCABULARY};
use super::factor::{Entry, Factor};
use super::lengths::Lengths;
use super::profile::Profile;
use super::set::Mask;
use super::sight::Sights;
use super::{narrow, near};
use crate::grammar::Regular;
use crate::limits::Limits;
use crate::machine::{Automata, Cursor, Digest, Identity, Terminal, TerminalError, TerminalSource};
use crate::vocab::Vocabulary;

/// The structures of one vocabulary: built once, filled lazily, shared by all grammars and threads.
///
/// What nearly every grammar needs, such as the inside of a JSON string, is put into a *base* that is never dropped;
/// see [`Tables::primed`]. The rest is bounded: when it passes the bound it is dropped and found again as it is
/// needed. A mask never depends on what is cached.
#[derive(Debug)]
pub struct Tables {
    vocab: Arc<Vocabulary>,
    horizon: u64,
    bound: usize,
    bytes: AtomicUsize,
    base: Arc<Base>,
    automata: Automata,
    terminals: DashMap<u64, Vec<(Regular, Arc<Terminal>)>, FxBuildHasher>,
    entries: DashMap<Identity, Arc<Entry>, FxBuildHasher>,
    factors: DashMap<Digest, Arc<Factor>, FxBuildHasher>,
    profiles: DashMap<Digest, Arc<Profile>, FxBuildHasher>,
    branches: DashMap<BranchKey, Arc<Branch>, FxBuildHasher>,
    key_branches: DashMap<BranchKey, Option<Arc<KeyBranch>>, FxBuildHasher>,
    /// The number of the next trie of rests.
    next_trie: AtomicU64,
}

/// The number of a trie, a node of it, and the language of a state.
type BranchKey = (u64, Option<u32>, Digest);

/// What tables of one vocabulary begin with.
#[derive(Debug, Default)]
struct Base {
    bytes: usize,
    /// All text tokens; found when first asked for.
    everything: OnceLock<Mask>,
    /// The tokens by their characters; found when first asked for.
    lengths: OnceLock<Arc<Lengths>>,
    /// What tokens hold, as far as it was asked for.
    sights: Arc<Sights>,
    terminals: FxHashMap<u64, Vec<(Regular, Arc<Terminal>)>>,
    factors: FxHashMap<Digest, Arc<Factor>>,
    profiles: FxHashMap<Digest, Arc<Profile>>,
    branches: FxHashMap<BranchKey, Arc<Branch>>,
    key_branches: FxHashMap<BranchKey, Option<Arc<KeyBranch>>>,
    /// How many tries of rests the base has.
    tries: u64,
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
        Tables::over(vocab, horizon, bound, Arc::default(), Automata::default())
    }

    fn over(
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
            factors: DashMap::default(),
            profiles: DashMap::default(),
            branches: DashMap::default(),
            key_branches: DashMap::default(),
        }
    }

    /// Tables with the same base that have learned nothing since.
    pub fn fresh(&self) -> Tables {
        Tables::over(
            self.vocab.clone(),
            self.horizon,
            self.bound,
            self.base.clone(),
            self.automata.fresh(),
        )
    }

    /// Tables whose base is everything that these have learned, and the factors of all states of their terminals.
    /// One walk of the vocabulary for each state that is not like another.
    pub fn primed(&self) -> Tables {
        let known = self.terminals.iter().flat_map(|list| list.value().clone());
        let terminals: Vec<Arc<Terminal>> = known.map(|(_, terminal)| terminal).collect();
        for terminal in &terminals {
            for state in 0..terminal.len().min(PRIMED_STATES) as u32 {
                self.factor(terminal, state).find_rests(&self.vocab);
                if terminal.is_counted() {
                    self.profile(terminal, state);
                }
            }
        }
        let factors = self.factors.iter();
        let mut base = Base {
            bytes: self.bytes(),
            everything: self.base.everything.clone(),
            lengths: self.base.lengths.clone(),
            sights: self.base.sights.clone(),
            terminals: self.base.terminals.clone(),
            factors: self.base.factors.clone(),
            profiles: self.base.profiles.clone(),
            branches: self.base.branches.clone(),
            key_branches: self.base.key_branches.clone(),
            tries: self.next_trie.load(Ordering::Relaxed) - VOCABULARY - 1,
        };
        let profiles = self.profiles.iter();
        base.profiles
            .extend(profiles.map(|entry| (*entry.key(), entry.value().clone())));
        base.factors
            .extend(factors.map(|entry| (*entry.key(), entry.value().clone())));
        let branches = self.branches.iter();
        base.branches
            .extend(branches.map(|entry| (*entry.key(), entry.value().clone())));
        let branches = self.key_branches.iter();
        base.key_branches
            .extend(branches.map(|entry| (*entry.key(), entry.value().clone())));
        for list in &self.terminals {
            base.terminals
                .entry(*list.key())
                .or_default()
                .extend(list.value().clone());
        }
        Tables::over(
            self.vocab.clone(),
            self.horizon,
            self.bound,
            Arc::new(base),
            self.automata.primed(),
        )
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// The memory that the tables take, in bytes; the vocabulary itself is not counted.
    pub fn bytes(&self) -> usize {
        self.base.bytes + self.bytes.load(Ordering::Relaxed)
    }

    /// All text tokens that have bytes.
    pub(crate) fn everything(&self) -> &Mask {
        self.base.everything.get_or_init(|| {
            let mut mask = Mask::empty(self.vocab.len());
            mask.insert_all(self.vocab.trie().tokens());
            mask
        })
    }

    /// The tokens by their characters.
    pub(super) fn lengths(&self) -> &Lengths {
        self.base
            .lengths
            .get_or_init(|| Arc::new(Lengths::new(&self.vocab)))
    }

    /// What tokens hold.
    pub(super) fn sights(&self) -> &Sights {
        &self.base.sights
    }

    /// The length of the longest token in bytes.
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    /// A subtree of as many nodes is walked faster than what is known of it is looked up. In the small vocabularies of
    /// tests all is looked up, so that the oracle sees it.
    pub(super) fn small(&self) -> usize {
        SMALL.min(self.vocab.trie().nodes().len() / MUCH)
    }

    /// What is known of a cursor.
    pub(crate) fn entry(&self, terminal: &Terminal, cursor: Cursor) -> Arc<Entry> {
        if let Some(narrow) = narrow::entry(terminal, cursor, self) {
            return narrow;
        }
        let identity = terminal.identity(cursor, self.horizon);
        if let Some(known) = self.entries.get(&identity) {
            return known.clone();
        }
        // Nothing is locked meanwhile: what is found may need more from here.
        let entry = Arc::new(Entry::new(terminal, cursor, self));
        self.grow(entry.bytes() + 96);
        self.entries.entry(identity).or_insert(entry).clone()
    }

    /// Whether something is known of a cursor already, or its bounds are felt.
    pub(super) fn knows(&self, terminal: &Terminal, cursor: Cursor) -> bool {
        if !terminal.is_plain(cursor, self.horizon) || narrow::entry(terminal, cursor, self).is_some() {
            return true;
        }
        let language = &terminal.names(false)[cursor.state as usize];
        self.base.factors.contains_key(language) || self.factors.contains_key(language)
    }

    /// The factor of a state whose bounds are left aside.
    pub(crate) fn factor(&self, terminal: &Terminal, state: u32) -> Arc<Factor> {
        let language = terminal.names(false)[state as usize];
        self.known_or((&self.base.factors, &self.factors), language, || {
            let factor = Arc::new(Factor::new(terminal, state, self));
            near::remember(terminal, state, &factor);
            (factor.bytes(), factor)
        })
    }

    /// The profile of a state of a counted language.
    pub(crate) fn profile(&self, terminal: &Terminal, state: u32) -> Arc<Profile> {
        let name = Profile::name(terminal, state);
        self.known_or((&self.base.profiles, &self.profiles), name, || {
            let profile = Profile::new(terminal, state, self);
            (profile.bytes(), Arc::new(profile))
        })
    }

    /// The vocabulary's trie as the ground of a walk.
    pub(super) fn ground(&self) -> Ground<'_> {
        Ground {
            trie: self.vocab.trie(),
            number: VOCABULARY,
        }
    }

    /// A number that no other trie has.
    pub(super) fn number(&self) -> u64 {
        self.next_trie.fetch_add(1, Ordering::Relaxed)
    }

    /// What a state allows below a node of a trie, bounds left aside.
    pub(super) fn branch(
        &self,
        terminal: &Terminal,
        state: u32,
        ground: Ground<'_>,
        top: Option<usize>,
    ) -> Arc<Branch> {
        let language = terminal.names(false)[state as usize];
        let key = (ground.number, top.map(|node| node as u32), language);
        self.known_or((&self.base.branches, &self.branches), key, || {
            let branch = Branch::new(terminal, state, ground.trie, top, self.vocab.len());
            (branch.bytes(), Arc::new(branch))
        })
    }

    /// The same for a state of a language of keys; `None` if its keys have to be read one by one.
    pub(super) fn key_branch(
        &self,
        terminal: &Terminal,
        state: u32,
        ground: Ground<'_>,
        top: Option<usize>,
    ) -> Option<Arc<KeyBranch>> {
        let language = terminal.names(false)[state as usize];
        let key = (ground.number, top.map(|node| node as u32), language);
        self.known_or((&self.base.key_branches, &self.key_branches), key, || {
            let branch = KeyBranch::new(terminal, state, ground.trie, top, self.vocab.len());
            (branch.as_ref().map_or(0, KeyBranch::bytes), branch.map(Arc::new))
        })
    }

    /// What is known by a key, or what is found now, with the bytes that it takes. Nothing is locked meanwhile: what is
    /// found may need more from here.
    fn known_or<K: Eq + Hash, V: Clone>(
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
            self.entries.clear();
            self.factors.clear();
            self.profiles.clear();
            self.branches.clear();
            self.key_branches.clear();
            self.terminals.clear();
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }
}

/// As many nodes are walked in the time of a look-up.
const SMALL: usize = 16;

/// A trie of fewer nodes has no subtrees that are small for it.
const MUCH: usize = 1 << 10;

/// Terminals with more states than this are not primed beyond them.
const PRIMED_STATES: usize = 64;

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
