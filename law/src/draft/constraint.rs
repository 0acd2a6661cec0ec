//! What drafters ask of a constraint.

use lexiform_automata::matcher::{Grammar, State};

/// A constraint as drafters see it. A state is a small value; a fork is a copy.
pub trait Constraint {
    /// The state after some text.
    type State: Copy;

    /// The state after one more token; `None` if the token is not allowed.
    fn step(&self, state: Self::State, token: u32) -> Option<Self::State>;

    /// The state after these bytes; `None` if no allowed text begins with them.
    fn step_bytes(&self, state: Self::State, bytes: &[u8]) -> Option<Self::State>;

    /// The bytes that every completion begins with.
    fn forced(&self, state: Self::State) -> Vec<u8>;

    /// A number for the state: that of a state that was reached by the same way in an equal constraint, in
    /// any process, and as good as never that of a state of another constraint. What is learned at a state is
    /// kept under it ([`predict`](super::Predictor)), over a restart too.
    ///
    /// It is asked for below each node of a draft, so it costs no more than a look-up where it was asked for
    /// before. Two states of a constraint may share one where nearly the same follows.
    fn key(&self, state: Self::State) -> u64;

    /// Whether the text may end here.
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
