//! Drafts: tokens guessed ahead, for the model to check in one pass.
//!
//! ```text
//!   Text (prompt, answer) ─┐
//!                          ├─► Drafter ─ offer(token) ─► Draft ──► rows of the model ──► verify
//!   Constraint, state ─────┘            refused if the constraint forbids it
//! ```
//!
//! A [`Drafter`] offers tokens; the [`Draft`] takes one only if the constraint allows it after those before it, so no
//! drafter can propose what the mask would reject, and each node carries the constraint's state after it. Drafts are
//! chains today; nodes name their parents, so a tree is a draft whose drafters offer below other nodes than the last.
//!
//! What a drafter looks at is its own affair. Under draw-once verification ([`verify::chain`](crate::verify::chain)) it may
//! even use the random numbers that the target will use, as a draft model does that draws at the target's places: where
//! both models agree about a row, it then guesses the very token. Only the residual rule asks for more, and says what.

mod forced;
mod lookup;
mod turns;

pub use forced::{Forced, LongestMatch, Tokenise};
pub use lookup::PromptLookup;
pub use turns::InTurn;

use crate::law::Distribution;

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

    /// Whether the text may end here.
    fn is_accepting(&self, state: Self::State) -> bool;
}

/// The tokens before the draft.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text<'a> {
    /// The prompt.
    pub prompt: &'a [u32],
    /// The answer so far.
    pub answer: &'a [u32],
}

/// Where a drafted token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Every completion has this text.
    Forced,
    /// Copied from the prompt or the answer.
    Copied,
    /// A draft model's choice.
    Model,
}

/// How a token was chosen.
#[derive(Clone, Debug)]
pub enum Proposal<Q = Distribution<'static>> {
    /// Without chance.
    Point,
    /// Drawn from this row inside the constraint's mask.
    Sampled(Q),
}

/// One drafted token.
#[derive(Clone, Debug)]
pub struct Node<S, Q = Distribution<'static>> {
    /// The token.
    pub token: u32,
    /// The node before it; `None` for the first token after the answer.
    pub parent: Option<usize>,
    /// Where it comes from.
    pub origin: Origin,
    /// How it was chosen.
    pub proposal: Proposal<Q>,
    /// The constraint's state after it; `None` without a constraint.
    pub state: Option<S>,
}

/// A draft in the making: tokens, each allowed after the one before.
pub struct Draft<'c, C: Constraint, Q = Distribution<'static>> {
    constraint: Option<&'c C>,
    start: Option<C::State>,
    ends: &'c [u32],
    budget: usize,
    nodes: Vec<Node<C::State, Q>>,
}

impl<'c, C: Constraint, Q> Draft<'c, C, Q> {
    /// An empty draft of at most `budget` tokens, after a text that led the constraint to a state. `ends` are the tokens
    /// that end a sequence; nothing is drafted after one.
    pub fn new(constraint: Option<(&'c C, C::State)>, ends: &'c [u32], budget: usize) -> Self {
        let (constraint, start) = constraint.unzip();
        Draft {
            constraint,
            start,
            ends,
            budget,
            nodes: Vec::new(),
        }
    }

    /// The nodes, each after its parent.
    pub fn nodes(&self) -> &[Node<C::State, Q>] {
        &self.nodes
    }

    /// The drafted tokens in order.
    pub fn tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.nodes.iter().map(|node| node.token)
    }

    /// How many more tokens will be taken.
    pub fn room(&self) -> usize {
        match self.nodes.last() {
            Some(last) if self.ends.contains(&last.token) => 0,
            _ => self.budget.saturating_sub(self.nodes.len()),
        }
    }

    /// The constraint and its state after the last token; `None` without a constraint.
    pub fn tip(&self) -> Option<(&'c C, C::State)> {
        let state = self.nodes.last().map_or(self.start, |node| node.state);
        self.constraint.zip(state)
    }

    /// The states at which the model's rows for this draft are masked: that of the text, then that after each token.
    pub fn states(&self) -> impl Iterator<Item = Option<C::State>> + '_ {
        std::iter::once(self.start).chain(self.nodes.iter().map(|node| node.state))
    }

    /// Appends a token chosen without chance. False if it was not taken: no room, or not allowed here.
    pub fn offer(&mut self, token: u32, origin: Origin) -> bool {
        self.offer_as(token, origin, Proposal::Point)
    }

    /// Appends a token. False if it was not taken: no room, or not allowed here.
    pub fn offer_as(&mut self, token: u32, origin: Origin, proposal: Proposal<Q>) -> bool {
        if self.room() == 0 {
            return false;
        }
        let state = match self.tip() {
            None => None,
            Some((constraint, state)) => match constraint.step(state, token) {
                None => return false,
                after => after,
            },
        };
        let parent = self.nodes.len().checked_sub(1);
        self.nodes.push(Node {
            token,
            parent,
            origin,
            proposal,
            state,
        });
        true
    }
}

/// Guesses what comes next.
pub trait Drafter<C: Constraint, Q = Distribution<'static>>: Send {
    /// Offers tokens after the text and after what the draft already holds, until it has no more to say or one is refused.
    fn propose(&mut self, text: Text<'_>, draft: &mut Draft<'_, C, Q>);

    /// Learns how much of its last draft was accepted.
    fn observe(&mut self, _drafted: usize, _accepted: usize) {}
}
