//! Sessions: one sequence as inference engines drive it.

pub(crate) mod answers;

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

use answers::{Event, RawReader};

/// The tokens of one sequence so far, and the state of its grammar after them. Its memory does not grow with
/// what the grammar stores about long texts.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Session {
    shared: Arc<Shared>,
    inner: Mutex<matcher::Session>,
}

#[pymethods]
impl Session {
    /// Creates a sequence at its beginning, or in a state of the grammar. `ends` are the tokens that end it;
    /// by default those of the vocabulary.
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

    /// Accepts a token or a list of tokens, all or none, and returns `True` if they were accepted. Returns
    /// `False` for tokens after the end.
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

    /// Returns how many of these tokens could be accepted one after the other. Accepts none.
    fn validate(&self, py: Python<'_>, tokens: Vec<u32>) -> usize {
        self.locked(py, |session| session.validate(&tokens))
    }

    /// Removes the last `count` tokens, which may include an end.
    fn rollback(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.locked(py, |session| session.rollback(count))
            .map_err(session_error)
    }

    /// Removes all tokens.
    fn reset(&self, py: Python<'_>) {
        self.locked(py, matcher::Session::reset);
    }

    /// Writes the mask of the tokens that may come next into a row of an array.
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

    /// Returns an independent copy of the session.
    fn copy(&self) -> Session {
        Session {
            shared: self.shared.clone(),
            inner: Mutex::new(self.lock().clone()),
        }
    }

    /// `True` if a token that ends the sequence was accepted.
    #[getter]
    fn terminated(&self) -> bool {
        self.lock().is_terminated()
    }

    /// `True` if the text so far is complete, so that the sequence may end.
    #[getter]
    fn accepting(&self) -> bool {
        self.lock().is_accepting()
    }

    /// The state of the sequence.
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

    /// Reads the accepted tokens that a reader has not read, and the end of the sequence.
    fn read_events(&self, reader: &Bound<'_, RawReader>) -> PyResult<Vec<Event>> {
        let session = self.lock();
        let vocabulary = session.grammar().vocabulary();
        let (tokens, is_ended) = (session.tokens(), session.is_terminated());
        let text = match is_ended {
            true => tokens.split_last().map_or(tokens, |(_, text)| text),
            false => tokens,
        };
        reader
            .get()
            .follow(text, |token| vocabulary.bytes(token), is_ended)
    }

    fn __repr__(&self) -> String {
        let session = self.lock();
        let ended = if session.is_terminated() { ", ended" } else { "" };
        format!("<Session of {} tokens{ended}>", session.tokens().len())
    }
}

impl Session {
    /// Returns the session as a row of a batch.
    pub(crate) fn row(&self, budget: Option<usize>) -> BatchRow {
        self.lock().row(budget)
    }

    /// Locks the session. The lock is never held while waiting for the interpreter.
    fn lock(&self) -> MutexGuard<'_, matcher::Session> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs short work on the session. Returns `None` if the work turns out not to be short, or if another
    /// thread holds the session.
    fn shortly<T>(&self, act: impl FnOnce(&mut matcher::Session) -> Option<T>) -> Option<T> {
        act(&mut *self.inner.try_lock().ok()?)
    }

    fn accepted(&self, py: Python<'_>, tokens: &[u32]) -> Result<(), SessionError> {
        // A step that was short is even shorter the second time.
        let short = self.shortly(|session| {
            briefly(SHORT, || session.validate(tokens))?;
            Some(session.accept(tokens))
        });
        short.unwrap_or_else(|| self.locked(py, |session| session.accept(tokens)))
    }

    /// Runs work on the session with the interpreter released: another thread may hold the session.
    fn locked<T: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut matcher::Session) -> T + Send) -> T {
        let _inside = fork::enter(py);
        py.detach(|| act(&mut self.lock()))
    }
}
