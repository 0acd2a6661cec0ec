//! Drafts as trees of tokens, each of which the constraint allows after its parent.

use std::sync::Arc;

use super::constraint::Constraint;
use crate::law::Distribution;

/// The source of a drafted token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The constraint: every completion has this text.
    Forced,
    /// Copied from the prompt or the answer.
    Copied,
    /// Copied from the reference text.
    Predicted,
    /// Chosen by a draft model.
    Model,
    /// Likely after the token before it ([`Recycling`](super::Recycling)).
    Recycled,
    /// Followed the two tokens before it ([`Trigram`](super::Trigram)).
    Trigram,
    /// Likely after the last few tokens ([`NGrams`](super::NGrams)).
    NGram,
    /// Likely at the constraint's state ([`StateKeyed`](super::StateKeyed)).
    Keyed,
    /// Followed in earlier answers ([`Suffixes`](super::Suffixes)).
    Suffix,
    /// Followed in a corpus ([`Retrieval`](super::Retrieval)).
    Retrieved,
    /// Written by other samples of the request ([`Consensus`](super::Consensus)).
    Consensus,
    /// Part of a phrase of a pool ([`Phrases`](super::Phrases)).
    Phrase,
}

/// The way in which a token was chosen.
#[derive(Clone, Debug)]
pub enum Proposal<Q = Distribution<'static>> {
    /// Chosen without chance, or in any other way: nothing is promised.
    Point,
    /// Drawn from this row inside the constraint's mask and without the siblings that were sampled before it
    /// ([`Allowed::without`](crate::law::Allowed::without)), with random numbers that nothing else uses.
    /// Siblings that were drawn one after the other from one row share it.
    Sampled(Arc<Q>),
    /// Drawn from this row inside the constraint's mask, independently of its siblings, with random numbers
    /// that nothing else uses. The same token may occur several times. Siblings that were drawn from one row
    /// share it.
    Independent(Arc<Q>),
}

impl<Q> Proposal<Q> {
    /// Returns `true` if the token was drawn from a row, so that every draw of it has to be judged.
    pub fn is_sampled(&self) -> bool {
        !matches!(self, Proposal::Point)
    }
}

/// The number of a node in its draft.
pub type NodeId = usize;

/// One drafted token.
#[derive(Clone, Debug)]
pub struct Node<S, Q = Distribution<'static>> {
    /// The token.
    pub token: u32,
    /// The node before it; `None` for the first token after the answer.
    pub parent: Option<NodeId>,
    /// The source of the token.
    pub origin: Origin,
    /// The way in which it was chosen.
    pub proposal: Proposal<Q>,
    /// The probability that it comes after its parent, according to its predictor; `None` if no predictor
    /// gave one.
    pub chance: Option<f32>,
    /// The constraint's state after it; `None` without a constraint.
    pub state: Option<S>,
}

/// A draft under construction: a tree of tokens, each allowed after its parent.
pub struct Draft<'c, C: Constraint, Q = Distribution<'static>> {
    constraint: Option<&'c C>,
    start: Option<C::State>,
    ends: &'c [u32],
    budget: usize,
    nodes: Vec<Node<C::State, Q>>,
}

impl<'c, C: Constraint, Q> Draft<'c, C, Q> {
    /// Creates an empty draft of at most `budget` tokens, after a text that led the constraint to a state.
    /// `ends` are the tokens that end a sequence; nothing is drafted after one.
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

    /// Returns the nodes, each after its parent, and siblings in the order of offering.
    pub fn nodes(&self) -> &[Node<C::State, Q>] {
        &self.nodes
    }

    /// Returns the tokens after which [`offer`](Self::offer) continues, in order: those of the nodes above
    /// the last node, and its own.
    pub fn tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.path(self.last())
            .into_iter()
            .map(|node| self.nodes[node].token)
    }

    /// Returns a node and those above it, the topmost first; empty for `None` and for a node that does not
    /// exist.
    pub fn path(&self, node: Option<NodeId>) -> Vec<NodeId> {
        let above = |&node: &NodeId| self.nodes.get(node)?.parent;
        let known = node.filter(|&node| node < self.nodes.len());
        let mut path: Vec<NodeId> = std::iter::successors(known, above).collect();
        path.reverse();
        path
    }

    /// Limits the draft to `budget` tokens from now on, including those that it has.
    pub fn set_budget(&mut self, budget: usize) {
        self.budget = budget;
    }

    /// Returns how many more tokens will be taken after the last one.
    pub fn room(&self) -> usize {
        self.room_below(self.last())
    }

    /// Returns how many more tokens will be taken below a node; none below one that ends the text.
    pub fn room_below(&self, node: Option<NodeId>) -> usize {
        match node.map(|node| self.nodes.get(node)) {
            Some(None) => 0,
            Some(Some(node)) if self.is_end(node.token) => 0,
            _ => self.budget.saturating_sub(self.nodes.len()),
        }
    }

    /// Returns `true` if a token ends the text.
    pub fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// Returns the constraint and its state after the last token; `None` without a constraint.
    pub fn tip(&self) -> Option<(&'c C, C::State)> {
        self.at(self.last())
    }

    /// Returns the constraint and its state after a node, or after the text for `None`; `None` without a
    /// constraint.
    pub fn at(&self, node: Option<NodeId>) -> Option<(&'c C, C::State)> {
        let state = node.map_or(Some(self.start), |node| Some(self.nodes.get(node)?.state));
        self.constraint.zip(state?)
    }

    /// Returns the states at which the model's rows for this draft are masked: the state after the text, then
    /// the state after each node.
    pub fn states(&self) -> impl Iterator<Item = Option<C::State>> + '_ {
        std::iter::once(self.start).chain(self.nodes.iter().map(|node| node.state))
    }

    /// Appends a token chosen without chance. Returns `false` if it was not taken: no room, or not allowed
    /// here.
    pub fn offer(&mut self, token: u32, origin: Origin) -> bool {
        self.offer_below(self.last(), token, origin, Proposal::Point)
            .is_some()
    }

    /// Adds a token below a node, or after the text for `None`, and returns its node. Does nothing and
    /// returns `None` if there is no room, if the token is not allowed, or below a token that ends the text.
    ///
    /// A token chosen without chance that a sibling already has adds no second node: the sibling is returned.
    /// A sampled token always gets its own node, because the rule that judges it has to see every draw.
    pub fn offer_below(
        &mut self,
        parent: Option<NodeId>,
        token: u32,
        origin: Origin,
        proposal: Proposal<Q>,
    ) -> Option<NodeId> {
        self.add(parent, (token, origin), proposal, None)
    }

    /// Adds a token chosen without chance below a node, with the chance that a predictor gives it there.
    pub fn offer_likely(
        &mut self,
        parent: Option<NodeId>,
        token: u32,
        origin: Origin,
        chance: f32,
    ) -> Option<NodeId> {
        self.add(parent, (token, origin), Proposal::Point, Some(chance))
    }

    fn add(
        &mut self,
        parent: Option<NodeId>,
        (token, origin): (u32, Origin),
        proposal: Proposal<Q>,
        chance: Option<f32>,
    ) -> Option<NodeId> {
        if let Proposal::Point = proposal
            && let Some(same) = self.child(parent, token)
        {
            return Some(same);
        }
        if self.room_below(parent) == 0 {
            return None;
        }
        let state = match self.at(parent) {
            None => None,
            Some((constraint, state)) => Some(constraint.step(state, token)?),
        };
        self.nodes.push(Node {
            token,
            parent,
            origin,
            proposal,
            chance,
            state,
        });
        self.last()
    }

    /// Returns the first child of a node that has this token.
    fn child(&self, parent: Option<NodeId>, token: u32) -> Option<NodeId> {
        let is_same = |node: &Node<C::State, Q>| node.parent == parent && node.token == token;
        self.nodes.iter().position(is_same)
    }

    fn last(&self) -> Option<NodeId> {
        self.nodes.len().checked_sub(1)
    }
}
