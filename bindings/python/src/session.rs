//! Sessions: one sequence as inference engines drive it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lexiform::BatchRow;
use lexiform::SessionError;
use lexiform::briefly;
use lexiform_automata::matcher;
use pyo3::prelude::*;

use crate::buffer::Words;
use crate::error::{limit_error, session_error};
use crate::fork;
use crate::grammar::Grammar;
use crate::state::{SHORT, Shared, State};

/// The tokens of one sequence so far, and where its grammar stands after them. Its memory does not grow with
/// what the grammar remembers of long texts.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Session {
    shared: Arc<Shared>,
    inner: Mutex<matcher::Session>,
}

#[pymethods]
impl Session {
    /// A sequence at its beginning, or in a state of the grammar. `ends` are the tokens that end it; by
    /// default those of the vocabulary.
    #[new]
    #[pyo3(signature = (grammar, *, state = None, ends = None))]
    fn new(
        grammar: &Bound<'_, Grammar>,
        state: Option<&Bound<'_, State>>,
        ends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Session> {
        let shared = grammar.get().shared.clone();
        let start = grammar.get().at_start();
        let state = state.map_or(Ok(&start), |state| state.get().of(&shared))?;
        let ends = state.ends(ends)?;
        let inner = matcher::Session::at(state.grammar().clone(), state.state, ends);
        Ok(Session {
            shared,
            inner: Mutex::new(inner),
        })
    }

    /// Takes a token or a list of tokens, all or none; whether they may come. False for tokens after the end.
    fn accept(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<bool> {
        let tokens = match tokens.extract::<u32>() {
            Ok(token) => vec![token],
            Err(_) => tokens.extract()?,
        };
        match self.accepted(py, &tokens) {
            Ok(()) => Ok(true),
            Err(SessionError::NotAllowed { .. } | SessionError::Ended { .. }) => Ok(false),
            Err(error) => Err(session_error(error)),
        }
    }

    /// How many of these tokens could be accepted one after the other. Nothing is taken.
    fn validate(&self, py: Python<'_>, tokens: Vec<u32>) -> usize {
        self.locked(py, |session| session.validate(&tokens))
    }

    /// Takes back the last tokens, an end among them too.
    fn rollback(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.locked(py, |session| session.rollback(count))
            .map_err(session_error)
    }

    /// Takes back all tokens.
    fn reset(&self, py: Python<'_>) {
        self.locked(py, matcher::Session::reset);
    }

    /// Writes the mask of what may come next into a row of an array.
    #[pyo3(signature = (mask, row = 0, *, budget = None))]
    fn fill(
        &self,
        py: Python<'_>,
        mask: &Bound<'_, PyAny>,
        row: usize,
        budget: Option<usize>,
    ) -> PyResult<()> {
        let width = self.lock().grammar().vocabulary().len().div_ceil(32);
        let mut words = Words::of(mask, width)?;
        let number = words.row(row)?;
        let words = words.one(number);
        let short = self.shortly(|session| briefly(SHORT, || session.fill(budget, words)));
        let filled = short.unwrap_or_else(|| self.locked(py, |session| session.fill(budget, words)));
        filled.map_err(limit_error)
    }

    /// A session that goes on from here by itself.
    fn copy(&self) -> Session {
        Session {
            shared: self.shared.clone(),
            inner: Mutex::new(self.lock().clone()),
        }
    }

    /// Whether a token that ends the sequence was accepted.
    #[getter]
    fn terminated(&self) -> bool {
        self.lock().is_terminated()
    }

    /// Whether the text so far is complete, so that the sequence may end.
    #[getter]
    fn accepting(&self) -> bool {
        self.lock().is_accepting()
    }

    /// Where the sequence stands.
    #[getter]
    fn state(&self) -> State {
        let session = self.lock();
        State {
            generation: self.shared.generation(session.grammar()),
            state: session.state(),
        }
    }

    /// The accepted tokens.
    #[getter]
    fn tokens(&self) -> Vec<u32> {
        self.lock().tokens().to_vec()
    }

    fn __repr__(&self) -> String {
        let session = self.lock();
        let ended = if session.is_terminated() { ", ended" } else { "" };
        format!("<Session of {} tokens{ended}>", session.tokens().len())
    }
}

impl Session {
    /// The session as a row of a batch.
    pub(crate) fn row(&self, budget: Option<usize>) -> BatchRow {
        self.lock().row(budget)
    }

    /// Never held while the interpreter is waited for.
    fn lock(&self) -> MutexGuard<'_, matcher::Session> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the session that may turn out to be no short work; `None` then, and where another
    /// thread has the session.
    fn shortly<T>(&self, act: impl FnOnce(&mut matcher::Session) -> Option<T>) -> Option<T> {
        act(&mut *self.inner.try_lock().ok()?)
    }

    fn accepted(&self, py: Python<'_>, tokens: &[u32]) -> Result<(), SessionError> {
        // A step that was short will be shorter the second time.
        let short = self.shortly(|session| {
            briefly(SHORT, || session.validate(tokens))?;
            Some(session.accept(tokens))
        });
        short.unwrap_or_else(|| self.locked(py, |session| session.accept(tokens)))
    }

    /// Does something to the session without holding the interpreter: another thread may have the session.
    fn locked<T: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut matcher::Session) -> T + Send) -> T {
        let _inside = fork::enter(py);
        py.detach(|| act(&mut self.lock()))
    }
}
