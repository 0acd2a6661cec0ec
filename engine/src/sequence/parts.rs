//! The parts of a sequence: its text, its grammar, its drafts, its draws and its report.

use super::past::Sparing;
use super::replay::Replay;
use super::rests::Rests;
use super::steering::Steering;
use super::tries::SharedTrie;
use super::watch::Watch;
use crate::State;
use crate::blocks::Table;
use crate::grammar::drafters;
use crate::grammar::masks::Bounds;
use crate::grammar::reply::GrammarTask;
use crate::request::driver::{Latest, Ranked, Weight};
use crate::request::{PreambleBudget, Request, law};
use crate::speculation::draft::Draft;
use crate::speculation::policy::Record;
use crate::speculation::store::Store;
use lexiform_law::draft::{JacobiWindow, Lookup, NodeId};
use lexiform_law::{Trie, Walk, Warper};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tokens of a sequence, and how many of them are in the cache.
pub(crate) struct TextState {
    /// The prompt and what was generated.
    pub(crate) tokens: Arc<Vec<u32>>,
    /// The number of tokens whose keys and values are in the cache.
    pub(crate) computed: usize,
    /// The blocks of the cache.
    pub(crate) table: Table,
    /// The number of prompt tokens whose keys and values were cached when the sequence began.
    pub(crate) cached: usize,
    /// The number of the last pass that included the sequence.
    pub(crate) last_pass: u64,
}

impl TextState {
    pub(super) fn new(prompt: &[u32]) -> Self {
        TextState {
            tokens: Arc::new(prompt.to_vec()),
            computed: 0,
            table: Table::default(),
            cached: 0,
            last_pass: 0,
        }
    }

    /// Returns the same text without blocks.
    pub(super) fn fork(&self) -> Self {
        TextState {
            tokens: self.tokens.clone(),
            table: Table::default(),
            ..*self
        }
    }
}

/// The state of a sequence's grammar, and the query that it is working on.
pub(crate) struct GrammarState {
    /// The state of the grammar after the tokens that it has read.
    pub(crate) state: Option<State>,
    /// The number of tokens that the grammar has read, including the prompt, which it does not look at.
    pub(crate) read: usize,
    /// `true` if the grammar has not been asked yet what can follow the last draw.
    pub(crate) is_due: bool,
    /// The query that the grammar is working on. The sequence is not scheduled meanwhile.
    pub(crate) grammar_task: Option<GrammarTask>,
    /// The masks of the next rows, if they were too late for the last pass or are wanted before the next one.
    pub(crate) masks: Option<Vec<Bounds>>,
    /// The number of queries that no pass waits for, after a slow one.
    pub(crate) cooldown: u8,
    /// The fewest tokens that complete the text, if requested when the grammar read it.
    pub(crate) distance: Option<usize>,
    /// The tokens that are left for the preamble after the text, if they are limited.
    pub(crate) preamble: Option<PreambleBudget>,
}

impl GrammarState {
    pub(super) fn new(request: &Request) -> Self {
        GrammarState {
            state: request.constraints.grammar.as_ref().map(crate::Grammar::start),
            read: request.prompt.tokens.len(),
            is_due: true,
            grammar_task: None,
            masks: None,
            cooldown: 0,
            distance: None,
            preamble: request.limits.preamble.map(PreambleBudget::new),
        }
    }

    /// Returns the same state, for a sequence that asks anew what can follow.
    pub(super) fn fork(&self) -> Self {
        GrammarState {
            is_due: true,
            grammar_task: None,
            masks: None,
            preamble: self.preamble.clone(),
            ..*self
        }
    }
}

/// The drafts of a sequence, their sources, and the record of earlier ones.
pub(crate) struct DraftState {
    /// The tokens that are fed beyond the text in the next pass.
    pub(crate) drafts: Vec<Draft>,
    /// The positions at which the text's last tokens occurred before, if lookup is on.
    pub(crate) lookup: Option<Arc<Lookup>>,
    /// Guesses that are fed beside the drafts.
    pub(crate) window: Option<JacobiWindow>,
    /// The store of earlier answers to the owner, which learns from this one.
    pub(crate) store: Option<Arc<Store>>,
    /// The store of the request's other samples, if there are several; they learn from each other.
    pub(crate) siblings: Option<Arc<Store>>,
    /// The number of tokens that have not changed since the draft model last read the text.
    pub(crate) unchanged: usize,
    /// The draft after which the draft model continues; `None` for the text.
    pub(crate) tip: Option<NodeId>,
    /// The number of drafts up to which the draft model may add to them.
    pub(crate) reach: usize,
    /// The record of earlier drafts.
    pub(crate) record: Record,
    /// The number of draws for which nothing is drafted.
    pub(super) rests: Rests,
    /// The number of tokens drafted.
    pub(crate) drafted: usize,
    /// The number of drafted tokens accepted.
    pub(crate) accepted: usize,
    /// The number of drafted tokens that were copied from the reference.
    pub(crate) predictions: usize,
    /// The number of accepted tokens that were copied from the reference.
    pub(crate) accepted_predictions: usize,
}

impl DraftState {
    /// Creates the state, and moves the reference from the request into the lookup.
    pub(super) fn new(request: &mut Request) -> Self {
        DraftState {
            drafts: Vec::new(),
            lookup: drafters::lookup(request).map(Arc::new),
            window: None,
            store: None,
            siblings: None,
            unchanged: 0,
            tip: None,
            reach: 0,
            record: Record::default(),
            rests: Rests::default(),
            drafted: 0,
            accepted: 0,
            predictions: 0,
            accepted_predictions: 0,
        }
    }

    /// Returns the same sources and counts, with no drafts.
    pub(super) fn fork(&self) -> Self {
        DraftState {
            drafts: Vec::new(),
            lookup: self.lookup.clone(),
            window: self.window.clone(),
            store: self.store.clone(),
            siblings: self.siblings.clone(),
            record: self.record.clone(),
            ..*self
        }
    }
}

/// How a sequence draws, and the results of the last draw.
pub(crate) struct DrawState {
    pub(crate) warper: Warper,
    /// How tokens are found that penalties spare, if there are any.
    pub(crate) sparing: Option<Arc<Sparing>>,
    pub(crate) walk: Walk,
    /// The trie that records the attempts of the walk, under laws that learn.
    pub(crate) trie: Option<SharedTrie>,
    pub(crate) replay: Replay,
    pub(crate) watch: Watch,
    /// The score of the text, the last time that it was scored.
    pub(crate) tilt: f64,
    /// How the remaining token budget has narrowed the choices so far.
    pub(crate) steering: Steering,
    /// The token drawn last, and the entropy of its row, if the request needs it.
    pub(crate) latest: Option<Latest>,
    /// The ranking of the last row, until the driver takes it.
    pub(crate) ranked: Vec<Ranked>,
    /// The weights of options, until the driver takes them.
    pub(crate) weighed: Vec<Weight>,
}

impl DrawState {
    pub(super) fn new(sparing: Option<Arc<Sparing>>, warper: Warper, walk: Walk) -> Self {
        DrawState {
            warper,
            sparing,
            walk,
            trie: None,
            replay: Replay::default(),
            watch: Watch::default(),
            tilt: 0.0,
            steering: Steering::default(),
            latest: None,
            ranked: Vec::new(),
            weighed: Vec::new(),
        }
    }

    /// Returns the state of another branch at the same position. Branches that learn in turn begin with empty
    /// tries of their own.
    pub(super) fn fork(&self, request: &Request) -> Self {
        let own = self.trie.as_ref().filter(|_| law::learns_in_turn(request));
        let own = own.map(|trie| Arc::new(Mutex::new(lock(trie).emptied())));
        let (walk, trie) = match own {
            Some(trie) => (
                law::learning_walk(request, &self.warper, trie.clone()),
                Some(trie),
            ),
            None => (self.walk.fork(), self.trie.clone()),
        };
        DrawState {
            warper: self.warper.clone(),
            sparing: self.sparing.clone(),
            walk,
            trie,
            replay: Replay::default(),
            watch: Watch::default(),
            tilt: self.tilt,
            steering: self.steering,
            latest: self.latest,
            ranked: Vec::new(),
            weighed: Vec::new(),
        }
    }

    /// Begins anew with a copy of what the attempts over another trie have found.
    pub(super) fn learn(&mut self, from: &SharedTrie, request: &Request) {
        let trie = Arc::new(Mutex::new(lock(from).clone()));
        self.walk = law::learning_walk(request, &self.warper, trie.clone());
        self.trie = Some(trie);
    }
}

/// Locks a trie. If a walk panicked, the trie lacks at worst that walk's last updates, on which no law
/// depends.
fn lock(trie: &SharedTrie) -> MutexGuard<'_, Trie> {
    trie.lock().unwrap_or_else(PoisonError::into_inner)
}
