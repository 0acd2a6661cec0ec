//! The interface of constraints for drafters.

use lexiform_automata::matcher::{Grammar, State};

/// A constraint, as drafters use it. A state is a small value; a fork is a copy.
pub trait Constraint {
    /// The state after some text.
    type State: Copy;

    /// Returns the state after one more token; `None` if the token is not allowed.
    fn step(&self, state: Self::State, token: u32) -> Option<Self::State>;

    /// Returns the state after these bytes; `None` if no allowed text continues with them.
    fn step_bytes(&self, state: Self::State, bytes: &[u8]) -> Option<Self::State>;

    /// Returns the bytes that every completion begins with.
    fn forced(&self, state: Self::State) -> Vec<u8>;

    /// Returns a key of the state. States reached in the same way in equal constraints have the same key, in
    /// any process; states of different constraints almost never share one. What is learned at a state is
    /// stored under its key ([`predict`](super::Predictor)), across restarts too.
    ///
    /// It is called below each node of a draft, so a repeated call costs no more than a look-up. Two states
    /// of a constraint may share a key if nearly the same text follows them.
    fn key(&self, state: Self::State) -> u64;

    /// Returns `true` if the text may end here.
    fn is_accepting(&self, state: Self::State) -> bool;
}

impl Constraint for Grammar {
    type State = State;

    fn step(&self, state: State, token: u32) -> Option<State> {
        Grammar::step(self, state, token)
    }

    fn step_bytes(&self, state: State, bytes: &[u8]) -> Option<State> {
        Grammar::step_bytes(self, state, bytes)
    }

    fn forced(&self, state: State) -> Vec<u8> {
        Grammar::forced(self, state)
    }

    fn key(&self, state: State) -> u64 {
        self.state_key(state)
    }

    fn is_accepting(&self, state: State) -> bool {
        Grammar::is_accepting(self, state)
    }
}
