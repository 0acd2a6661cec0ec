//! States: where a sequence stands, as a value.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lexiform::matcher::{self, Ends};
use lexiform::{Exhausted, briefly};
use pyo3::prelude::*;

use crate::error::{limit_error, state_error, vocabulary_error};
use crate::fork;

/// What all handles on one compiled grammar share.
pub(crate) struct Shared {
    /// The grammar, or what has taken its place since it outgrew its memory.
    current: Mutex<lexiform::Grammar>,
    /// The steps that were taken: the grammar is asked now and then whether it has outgrown its memory.
    steps: AtomicU32,
}

/// After so many steps a grammar is asked, which costs as much as several of them.
const ASKED_AFTER: u32 = 64;

/// The work that is done without releasing the interpreter, in rounds: some microseconds.
const SHORT: usize = 256;

/// Does work that is mostly short: first with the interpreter held, and if it takes longer, again without.
pub(crate) fn asked<T: Send>(py: Python<'_>, ask: impl Fn() -> T + Send + Sync) -> T {
    let _inside = fork::enter(py);
    briefly(SHORT, &ask).unwrap_or_else(|| py.detach(ask))
}

impl Shared {
    pub(crate) fn new(grammar: lexiform::Grammar) -> Arc<Shared> {
        Arc::new(Shared {
            current: Mutex::new(grammar),
            steps: AtomicU32::new(0),
        })
    }

    /// The grammar as new sequences use it.
    pub(crate) fn current(&self) -> lexiform::Grammar {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(renewed) = current.renewed() {
            *current = renewed;
        }
        current.clone()
    }

    /// The memory of what was found so far, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .bytes()
    }

    /// A state in the grammar that takes the place of one that has outgrown its memory.
    fn renewed(
        &self,
        grammar: &lexiform::Grammar,
        state: lexiform::State,
    ) -> Option<(lexiform::Grammar, lexiform::State)> {
        if !self
            .steps
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(ASKED_AFTER)
        {
            return None;
        }
        let renewed = grammar.renewed()?;
        let state = renewed.adopt(grammar, state)?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = renewed.clone();
        Some((renewed, state))
    }
}

/// Where a sequence stands. States are values: to keep one is to be able to go back, and equal states have the same future.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct State {
    pub(crate) shared: Arc<Shared>,
    pub(crate) grammar: lexiform::Grammar,
    pub(crate) state: lexiform::State,
}

#[pymethods]
impl State {
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<State>();
        other.is_ok_and(|other| {
            let other = other.get();
            self.state == other.state && self.grammar.is(&other.grammar)
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (Arc::as_ptr(&self.shared).addr(), self.state).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("State({})", self.state.to_u32())
    }
}

impl State {
    /// The state itself, if it belongs to the grammar.
    pub(crate) fn of(&self, shared: &Arc<Shared>) -> PyResult<&State> {
        match Arc::ptr_eq(&self.shared, shared) {
            true => Ok(self),
            false => Err(state_error()),
        }
    }

    /// Another state of the same grammar.
    pub(crate) fn at(&self, state: lexiform::State) -> State {
        State {
            shared: self.shared.clone(),
            grammar: self.grammar.clone(),
            state,
        }
    }

    /// The state after one more token; `None` if it may not come.
    pub(crate) fn after(&self, py: Python<'_>, token: u32, ends: Option<&Ends>) -> PyResult<Option<State>> {
        let next = asked(py, || self.grammar.step_for(self.state, token, ends));
        Ok(next.map_err(limit_error)?.map(|next| self.kept(next)))
    }

    /// A state that follows this one, in the grammar in which it goes on.
    pub(crate) fn kept(&self, state: lexiform::State) -> State {
        match self.shared.renewed(&self.grammar, state) {
            None => self.at(state),
            Some((grammar, state)) => State {
                shared: self.shared.clone(),
                grammar,
                state,
            },
        }
    }

    /// The state as a row of a batch.
    pub(crate) fn row(&self, budget: Option<usize>, ends: Option<Ends>) -> matcher::Row {
        matcher::Row {
            grammar: self.grammar.clone(),
            state: self.state,
            budget,
            ends,
        }
    }

    /// Writes the mask of what may come next.
    pub(crate) fn fill(
        &self,
        py: Python<'_>,
        (budget, ends): (Option<usize>, Option<&Ends>),
        words: &mut [u32],
    ) -> PyResult<()> {
        let _inside = fork::enter(py);
        let mut fill = || self.grammar.fill(self.state, budget, ends, words);
        let filled: Result<(), Exhausted> = match briefly(SHORT, &mut fill) {
            Some(filled) => filled,
            None => py.detach(fill),
        };
        filled.map_err(limit_error)
    }

    /// These tokens as the ends of a request; `None` for those of the vocabulary.
    pub(crate) fn ends(&self, ends: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Ends>> {
        let Some(ends) = ends else { return Ok(None) };
        let tokens = ends.try_iter()?.map(|token| token?.extract::<u32>());
        let tokens: Vec<u32> = tokens.collect::<PyResult<_>>()?;
        let ends = Ends::new(tokens, self.grammar.vocabulary());
        ends.map(Some).map_err(vocabulary_error)
    }
}
