//! Drafts as trees of tokens, each of which the constraint allows after its parent.

use std::sync::Arc;

use super::constraint::Constraint;
use crate::law::Distribution;

/// Where a drafted token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Every completion has this text.
    Forced,
    /// Copied from the prompt or the answer.
    Copied,
    /// Copied from the text that was given as a reference.
    Predicted,
    /// A draft model's choice.
    Model,
    /// What was likely after the token before it ([`Recycling`](super::Recycling)).
    Recycled,
    /// What followed the two tokens before it ([`Trigram`](super::Trigram)).
    Trigram,
    /// What was likely after the last few tokens ([`NGrams`](super::NGrams)).
    NGram,
    /// What was likely at the constraint's state ([`StateKeyed`](super::StateKeyed)).
    Keyed,
    /// What followed in earlier answers ([`Suffixes`](super::Suffixes)).
    Suffix,
    /// What followed in a corpus ([`Retrieval`](super::Retrieval)).
    Retrieved,
    /// What other samples of the request went on with ([`Consensus`](super::Consensus)).
    Consensus,
    /// A phrase of a pool ([`Phrases`](super::Phrases)).
    Phrase,
}

/// How a token was chosen.
#[derive(Clone, Debug)]
pub enum Proposal<Q = Distribution<'static>> {
    /// Without chance, or by whatever chance: nothing is promised.
    Point,
    /// Drawn from this row inside the constraint's mask and without the siblings that were sampled before it
    /// ([`Allowed::without`](crate::law::Allowed::without)), with random numbers that nothing else uses.
    /// Siblings that were drawn one after the other from one row share it.
    Sampled(Arc<Q>),
    /// Drawn from this row inside the constraint's mask, whatever its siblings are, with random numbers that
    /// nothing else uses. The same token may come several times. Siblings that were drawn from one row share
    /// it.
    Independent(Arc<Q>),
}

impl<Q> Proposal<Q> {
    /// Whether it was drawn from a row, so that every draw of it has to be judged.
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
    /// Where it comes from.
    pub origin: Origin,
    /// How it was chosen.
    pub proposal: Proposal<Q>,
    /// How likely its predictor takes it to come after its parent; `None` where nobody has said.
    pub chance: Option<f32>,
    /// The constraint's state after it; `None` without a constraint.
    pub state: Option<S>,
}

/// A draft in the making: a tree of tokens, each allowed after its parent.
pub struct Draft<'c, C: Constraint, Q = Distribution<'static>> {
    constraint: Option<&'c C>,
    start: Option<C::State>,
    ends: &'c [u32],
    budget: usize,
    nodes: Vec<Node<C::State, Q>>,
}

impl<'c, C: Constraint, Q> Draft<'c, C, Q> {
    /// An empty draft of at most `budget` tokens, after a text that led the constraint to a state. `ends` are
    /// the tokens that end a sequence; nothing is drafted after one.
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

    /// The nodes, each after its parent, and siblings in the order of offering.
    pub fn nodes(&self) -> &[Node<C::State, Q>] {
        &self.nodes
    }

    /// The tokens that [`offer`](Self::offer) goes on after, in order: those of the last node and of the
    /// nodes above it.
    pub fn tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.path(self.last())
            .into_iter()
            .map(|node| self.nodes[node].token)
    }

    /// A node and those above it, the highest first; empty for `None` and for a node that is not there.
    pub fn path(&self, node: Option<NodeId>) -> Vec<NodeId> {
        let above = |&node: &NodeId| self.nodes.get(node)?.parent;
        let known = node.filter(|&node| node < self.nodes.len());
        let mut path: Vec<NodeId> = std::iter::successors(known, above).collect();
        path.reverse();
        path
    }

    /// Takes at most so many tokens from now on, those that it has included.
    pub fn set_budget(&mut self, budget: usize) {
        self.budget = budget;
    }

    /// How many more tokens will be taken after the last one.
    pub fn room(&self) -> usize {
        self.room_below(self.last())
    }

    /// How many more tokens will be taken below a node; none below one that ends the text.
    pub fn room_below(&self, node: Option<NodeId>) -> usize {
        match node.map(|node| self.nodes.get(node)) {
            Some(None) => 0,
            Some(Some(node)) if self.ends.contains(&node.token) => 0,
            _ => self.budget.saturating_sub(self.nodes.len()),
        }
    }

    /// The constraint and its state after the last token; `None` without a constraint.
    pub fn tip(&self) -> Option<(&'c C, C::State)> {
        self.at(self.last())
    }

    /// The constraint and its state after a node, or after the text for `None`; `None` without a constraint.
    pub fn at(&self, node: Option<NodeId>) -> Option<(&'c C, C::State)> {
        let state = node.map_or(Some(self.start), |node| Some(self.nodes.get(node)?.state));
        self.constraint.zip(state?)
    }

    /// The states at which the model's rows for this draft are masked: that of the text, then that after each
    /// node.
    pub fn states(&self) -> impl Iterator<Item = Option<C::State>> + '_ {
        std::iter::once(self.start).chain(self.nodes.iter().map(|node| node.state))
    }

    /// Appends a token chosen without chance. False if it was not taken: no room, or not allowed here.
    pub fn offer(&mut self, token: u32, origin: Origin) -> bool {
        self.offer_below(self.last(), token, origin, Proposal::Point)
            .is_some()
    }

    /// Adds a token below a node, or after the text for `None`; its node. Without effect where there is no
    /// room, or where the token is not allowed, or below a token that ends the text.
    ///
    /// A token chosen without chance that a sibling has already is no second node: its node is that sibling.
    /// A sampled token always gets its own, because the rule that judges it has to know of every draw.
    pub fn offer_below(
        &mut self,
        parent: Option<NodeId>,
        token: u32,
        origin: Origin,
        proposal: Proposal<Q>,
    ) -> Option<NodeId> {
        self.add(parent, (token, origin), proposal, None)
    }

    /// Adds a token chosen without chance below a node, of which a predictor says how likely it is to come
    /// there.
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

    /// The first child of a node that has this token.
    fn child(&self, parent: Option<NodeId>, token: u32) -> Option<NodeId> {
        let is_same = |node: &Node<C::State, Q>| node.parent == parent && node.token == token;
        self.nodes.iter().position(is_same)
    }

    fn last(&self) -> Option<NodeId> {
        self.nodes.len().checked_sub(1)
    }
}
