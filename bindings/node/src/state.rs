//! States: positions of sequences in a grammar, as values.
//!
//! A state holds its grammar. When a grammar has outgrown its memory, steps lead into its replacement, and
//! the old one is freed with its last state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lexiform::Ends;
use napi::Result;
use napi_derive::napi;

use crate::error::state_error;
use crate::options::tokens;
use crate::vocabulary::vocabulary_error;

/// What all handles on one compiled grammar share: the grammar, or its replacement after it outgrew its
/// memory.
pub(crate) struct Shared(Mutex<lexiform::Grammar>);

impl Shared {
    pub(crate) fn new(grammar: lexiform::Grammar) -> Arc<Shared> {
        Arc::new(Shared(Mutex::new(grammar)))
    }

    fn lock(&self) -> MutexGuard<'_, lexiform::Grammar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the grammar for new sequences.
    pub(crate) fn current(&self) -> lexiform::Grammar {
        let mut current = self.lock();
        if let Some(renewed) = current.compacted() {
            *current = renewed;
        }
        current.clone()
    }
}

/// The position of a sequence in its grammar.
#[napi]
pub struct State {
    shared: Arc<Shared>,
    pub(crate) grammar: lexiform::Grammar,
    pub(crate) inner: lexiform::State,
}

#[napi]
impl State {
    /// Returns `true` if the other state has the same future.
    #[napi(catch_unwind)]
    pub fn equals(&self, other: &State) -> bool {
        self.inner == other.inner && self.grammar.ptr_eq(&other.grammar)
    }
}

impl State {
    pub(crate) fn new(shared: &Arc<Shared>, grammar: lexiform::Grammar, inner: lexiform::State) -> State {
        State {
            shared: shared.clone(),
            grammar,
            inner,
        }
    }

    /// Returns the state itself, if it belongs to the grammar.
    ///
    /// # Errors
    /// It belongs to another one.
    pub(crate) fn of(&self, shared: &Arc<Shared>) -> Result<&State> {
        match Arc::ptr_eq(&self.shared, shared) {
            true => Ok(self),
            false => Err(state_error()),
        }
    }

    /// Returns another state of the same grammar.
    pub(crate) fn at(&self, inner: lexiform::State) -> State {
        State::new(&self.shared, self.grammar.clone(), inner)
    }

    /// Returns a state that follows this one in the replacement of its grammar, if that has outgrown its
    /// memory.
    pub(crate) fn renewed(&self, next: lexiform::State) -> Option<State> {
        let grammar = self.grammar.compacted()?;
        let next = grammar.adopt(&self.grammar, next)?;
        *self.shared.lock() = grammar.clone();
        Some(State::new(&self.shared, grammar, next))
    }

    /// Returns these tokens as the ends of a sequence; `None` for those of the vocabulary.
    ///
    /// # Errors
    /// One of them is no token of the vocabulary.
    pub(crate) fn ends(&self, ends: Option<Vec<f64>>) -> Result<Option<Ends>> {
        let Some(ends) = ends else { return Ok(None) };
        let ends = Ends::new(tokens(&ends)?, self.grammar.vocabulary());
        ends.map(Some).map_err(vocabulary_error)
    }
}
