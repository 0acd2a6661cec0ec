//! States: positions of sequences in a grammar, as values.
//!
//! A state holds its grammar. When a grammar has outgrown its memory, steps lead into its replacement, and
//! the old one is freed with its last state.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lexiform::briefly;
use lexiform::error::Exhausted;
use lexiform::{BatchRow, MaskRequest};
use lexiform_automata::matcher::Ends;
use pyo3::prelude::*;

use crate::error::{limit_error, state_error, vocabulary_error};
use crate::fork;

/// The data that all handles on one compiled grammar share.
pub(crate) struct Shared {
    /// Distinguishes the states of one grammar from those of others.
    id: u64,
    /// The grammar, or its replacement after it outgrew its memory.
    current: Mutex<Arc<Generation>>,
}

/// One of the successive grammars.
pub(crate) struct Generation {
    id: u64,
    pub(crate) grammar: lexiform::Grammar,
    /// The place where the next generation is stored. A caller that steps has a handle that keeps it alive.
    shared: Weak<Shared>,
    /// The number of steps taken, by which the grammar is checked from time to time for having outgrown its
    /// memory. Simultaneous steps of several threads may count as one.
    steps: AtomicU32,
}

/// A grammar is checked after this many steps, because a check costs as much as several of them.
const ASKED_AFTER: u32 = 64;

/// The amount of work done without releasing the interpreter, in rounds: a few microseconds.
pub(crate) const SHORT: usize = 256;

/// Runs work that is mostly short: first with the interpreter held, and if it takes longer, again without.
pub(crate) fn asked<T: Send>(py: Python<'_>, ask: impl Fn() -> T + Send + Sync) -> T {
    briefly(SHORT, &ask).unwrap_or_else(|| {
        let _inside = fork::enter(py);
        py.detach(ask)
    })
}

impl Shared {
    pub(crate) fn new(grammar: lexiform::Grammar) -> Arc<Shared> {
        static GRAMMARS: AtomicU64 = AtomicU64::new(0);
        let id = GRAMMARS.fetch_add(1, Ordering::Relaxed);
        Arc::new_cyclic(|shared| Shared {
            id,
            current: Mutex::new(Generation::new(id, grammar, shared.clone())),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Generation>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the grammar for new sequences.
    pub(crate) fn current(&self) -> Arc<Generation> {
        let mut current = self.lock();
        if let Some(renewed) = current.grammar.compacted() {
            *current = Generation::new(self.id, renewed, current.shared.clone());
        }
        current.clone()
    }

    /// Returns the generation of a grammar that is one of the successive ones.
    pub(crate) fn generation(&self, grammar: &lexiform::Grammar) -> Arc<Generation> {
        let current = self.lock();
        match current.grammar.ptr_eq(grammar) {
            true => current.clone(),
            false => Generation::new(self.id, grammar.clone(), current.shared.clone()),
        }
    }

    /// Returns the memory of the masks and states found so far, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().grammar.memory_usage()
    }
}

impl Generation {
    fn new(id: u64, grammar: lexiform::Grammar, shared: Weak<Shared>) -> Arc<Generation> {
        Arc::new(Generation {
            id,
            grammar,
            shared,
            steps: AtomicU32::new(0),
        })
    }

    /// Returns the state in the replacement of this grammar, if the grammar has outgrown its memory.
    fn renewed(&self, state: lexiform::State) -> Option<State> {
        let steps = self.steps.load(Ordering::Relaxed);
        self.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
        if !steps.is_multiple_of(ASKED_AFTER) {
            return None;
        }
        let grammar = self.grammar.compacted()?;
        let state = grammar.adopt(&self.grammar, state)?;
        let shared = self.shared.upgrade()?;
        let generation = shared.generation(&grammar);
        *shared.lock() = generation.clone();
        Some(State { generation, state })
    }
}

/// The position of a sequence in its grammar. States are values: keep one to be able to go back. Equal states
/// have the same future.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct State {
    pub(crate) generation: Arc<Generation>,
    pub(crate) state: lexiform::State,
}

#[pymethods]
impl State {
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<State>();
        other.is_ok_and(|other| {
            let other = other.get();
            self.state == other.state && self.grammar().ptr_eq(other.grammar())
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.generation.id, self.state).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("State({})", self.state.to_u32())
    }
}

impl State {
    /// Returns the state itself, if it belongs to the grammar.
    pub(crate) fn of(&self, shared: &Arc<Shared>) -> PyResult<&State> {
        match self.generation.id == shared.id {
            true => Ok(self),
            false => Err(state_error()),
        }
    }

    /// Returns the grammar that the state belongs to.
    pub(crate) fn grammar(&self) -> &lexiform::Grammar {
        &self.generation.grammar
    }

    /// Returns another state of the same grammar.
    pub(crate) fn at(&self, state: lexiform::State) -> State {
        State {
            generation: self.generation.clone(),
            state,
        }
    }

    /// Returns the state after one more token; `None` if the token may not come.
    pub(crate) fn after(&self, py: Python<'_>, token: u32, ends: Option<&Ends>) -> PyResult<Option<State>> {
        let next = asked(py, || self.grammar().step_for(self.state, token, ends));
        Ok(next.map_err(limit_error)?.map(|next| self.kept(next)))
    }

    /// Returns a state that follows this one, in the grammar in which it continues.
    pub(crate) fn kept(&self, state: lexiform::State) -> State {
        let renewed = self.generation.renewed(state);
        renewed.unwrap_or_else(|| self.at(state))
    }

    /// Returns the state as a row of a batch.
    pub(crate) fn row(&self, budget: Option<usize>, ends: Option<Ends>) -> BatchRow {
        BatchRow {
            grammar: self.grammar().clone(),
            state: self.state,
            budget,
            ends,
        }
    }

    /// Writes the mask of the tokens that may come next.
    pub(crate) fn fill(
        &self,
        py: Python<'_>,
        (budget, ends): (Option<usize>, Option<&Ends>),
        words: &mut [u32],
    ) -> PyResult<()> {
        let mut fill = || {
            self.grammar()
                .fill(MaskRequest::from(self.state).within(budget).ending(ends), words)
        };
        let filled: Result<(), Exhausted> = match briefly(SHORT, &mut fill) {
            Some(filled) => filled,
            None => {
                let _inside = fork::enter(py);
                py.detach(fill)
            }
        };
        filled.map_err(limit_error)
    }

    /// Returns these tokens as the ends of a request; `None` for those of the vocabulary.
    pub(crate) fn ends(&self, ends: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Ends>> {
        let Some(ends) = ends else { return Ok(None) };
        let tokens = ends.try_iter()?.map(|token| token?.extract::<u32>());
        let tokens: Vec<u32> = tokens.collect::<PyResult<_>>()?;
        let ends = Ends::new(tokens, self.grammar().vocabulary());
        ends.map(Some).map_err(vocabulary_error)
    }
}
