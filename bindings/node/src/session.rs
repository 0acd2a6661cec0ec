//! Sessions: one sequence as inference engines drive it.

use std::sync::Arc;

use lexiform::SessionError;
use napi::Result;
use napi::bindgen_prelude::Uint32ArraySlice;
use napi_derive::napi;

use crate::batch::Row;
use crate::error::{limit_error, session_error};
use crate::grammar::{Grammar, budget_of};
use crate::mask;
use crate::options::{tokens, whole};
use crate::state::{Shared, State};
use crate::vocabulary::{count, words};

/// The tokens of one sequence so far, and the state of its grammar after them.
#[napi]
pub struct Session {
    shared: Arc<Shared>,
    inner: lexiform::Session,
}

#[napi]
impl Session {
    /// Creates a sequence at its beginning, or in a state of the grammar.
    #[napi(constructor, catch_unwind)]
    pub fn new(grammar: &Grammar, state: Option<&State>, ends: Option<Vec<f64>>) -> Result<Session> {
        let start = grammar.start();
        let state = state.map_or(Ok(&start), |state| state.of(&grammar.shared))?;
        let ends = state.ends(ends)?;
        Ok(Session {
            shared: grammar.shared.clone(),
            inner: lexiform::Session::at(state.grammar.clone(), state.inner, ends),
        })
    }

    /// Accepts tokens, all or none, and returns `true` if they were accepted.
    #[napi(catch_unwind)]
    pub fn accept(&mut self, path: Vec<f64>) -> Result<bool> {
        match self.inner.accept(&tokens(&path)?) {
            Ok(()) => Ok(true),
            Err(SessionError::NotAllowed { .. } | SessionError::Ended { .. }) => Ok(false),
            Err(error) => Err(session_error(error)),
        }
    }

    /// Returns how many of these tokens could be accepted one after the other. Accepts none.
    #[napi(catch_unwind)]
    pub fn validate(&self, path: Vec<f64>) -> Result<u32> {
        Ok(count(self.inner.validate(&tokens(&path)?)))
    }

    /// Removes the last tokens, which may include an end.
    #[napi(catch_unwind)]
    pub fn rollback(&mut self, number: f64) -> Result<()> {
        let number = whole("the number of tokens", number)? as usize;
        self.inner.rollback(number).map_err(session_error)
    }

    /// Removes all tokens.
    #[napi(catch_unwind)]
    pub fn reset(&mut self) {
        self.inner.reset();
    }

    /// Writes the mask of the tokens that may come next into a row of an array.
    #[napi(catch_unwind)]
    pub fn fill(&self, mut mask: Uint32ArraySlice<'_>, row: f64, budget: Option<f64>) -> Result<()> {
        let budget = budget_of(budget)?;
        let row = mask::row(&mut mask, words(self.inner.grammar().vocabulary()), row)?;
        self.inner.fill(budget, row).map_err(limit_error)
    }

    /// Returns the session as a row of a batch.
    #[napi(catch_unwind)]
    pub fn row(&self, budget: Option<f64>) -> Result<Row> {
        Ok(Row(self.inner.row(budget_of(budget)?)))
    }

    /// Returns an independent copy of the session.
    #[napi(catch_unwind)]
    pub fn fork(&self) -> Session {
        Session {
            shared: self.shared.clone(),
            inner: self.inner.clone(),
        }
    }

    /// `true` if a token that ends the sequence was accepted.
    #[napi(getter, catch_unwind)]
    pub fn terminated(&self) -> bool {
        self.inner.is_terminated()
    }

    /// `true` if the text so far is complete, so that the sequence may end.
    #[napi(getter, catch_unwind)]
    pub fn accepting(&self) -> bool {
        self.inner.is_accepting()
    }

    /// The state of the sequence.
    #[napi(getter, catch_unwind)]
    pub fn state(&self) -> State {
        State::new(&self.shared, self.inner.grammar().clone(), self.inner.state())
    }

    /// The accepted tokens.
    #[napi(getter, catch_unwind)]
    pub fn tokens(&self) -> Vec<u32> {
        self.inner.tokens().to_vec()
    }
}
