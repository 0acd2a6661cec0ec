//! The trie that attempts learn in: for every visited prefix, a bound on the mass of its valid completions.
//!
//! The papers call this a deficit trie. For a prefix `u` it bounds `c(u)`, the probability that the model
//! completes `u` to a valid sequence, by `θ(u)`:
//!
//! ```text
//!              θ = rest + Σ p·θ(child)                 rest: allowed mass on tokens without an edge, which count in full
//!      ε  rest .3                                      weight p(token|u) on each edge
//!      ├─ .5 ─ a   rest 0     θ(a)  = .1·1 = .1        a visited prefix whose allowed tokens hold .1
//!      │       └─ .1 ─ aa     (not visited: θ = 1)
//!      └─ .2 ─ b   (not visited: θ = 1)
//!      θ(ε) = .3 + .5·.1 + .2·1 = .55
//! ```
//!
//! `c(u) ≤ θ(u) ≤ m(u) ≤ 1`, and `θ` only falls. A dense row for each prefix, as in published code, would
//! take a megabyte; here a prefix takes one number and its visited continuations.
//!
//! **Why not deficits.** `1 − θ` loses all digits of a small `θ`. Every `θ` here is a sum of non-negative
//! terms that were measured directly, so small ones are as precise as large ones.
//!
//! **Why memory can be bounded.** Attempts are exact for *any* trie in which an edge without a node has a `θ`
//! of 1. A trie that is full learns nothing more. Forgetting a subtree raises the `θ` above it, which an
//! attempt under way below it would see as a probability above 1; so the trie forgets only while no attempt
//! is under way. It then drops the prefixes visited longest ago; prefixes below them were not visited later,
//! and are dropped too.
//!
//! **Why staleness is harmless.** An attempt recomputes `θ(u)` where it arrives and survives with probability
//! new/held, where `held` is the value of `θ(u)` with which it was sent there. Values further up that do not
//! yet include a change cost efficiency, never exactness. So they are brought up to date once an attempt, at
//! its end.

use std::sync::Arc;

use crate::law::weight::sum;
use crate::law::{Allowed, Weight};

#[derive(Clone, Debug)]
struct TrieEdge<W> {
    token: u32,
    weight: W,
    node: Option<usize>,
}

#[derive(Clone, Debug)]
struct TrieNode<W> {
    rest: W,
    bound: W,
    parent: Option<usize>,
    edges: Vec<TrieEdge<W>>,
    /// The time at which the latest of its visitors began; so it is never less than that of a node below.
    used: u64,
}

/// The position of an attempt in the trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// At the empty prefix.
    Root,
    /// Below an edge.
    Below {
        /// The prefix that the edge leaves.
        node: usize,
        /// Its index among the edges there.
        edge: usize,
    },
    /// At a prefix for which the trie had no room.
    Untracked,
}

/// The bounds that all attempts with one key share; the key is (model, prompt, warping, constraint, greatest
/// length).
#[derive(Debug)]
pub struct Trie<W = f64> {
    /// Parents come before their children.
    nodes: Vec<TrieNode<W>>,
    edges: usize,
    capacity: usize,
    ends: Arc<[u32]>,
    longest: u32,
    clock: u64,
    in_flight: Arc<()>,
}

/// A copy starts with the same contents and learns independently; no attempt is under way over it.
impl<W: Clone> Clone for Trie<W> {
    fn clone(&self) -> Self {
        let (nodes, ends) = (self.nodes.clone(), self.ends.clone());
        Trie {
            nodes,
            ends,
            in_flight: Arc::new(()),
            ..*self
        }
    }
}

impl<W: Weight> Trie<W> {
    /// Creates an empty trie for sequences of at most `longest` tokens, including the ending one, which must
    /// be one of `ends`. It keeps at most `capacity` prefixes and edges.
    pub fn new(ends: &[u32], longest: u32, capacity: usize) -> Self {
        let in_flight = Arc::new(());
        Trie {
            nodes: Vec::new(),
            edges: 0,
            capacity,
            ends: ends.into(),
            longest,
            clock: 0,
            in_flight,
        }
    }

    /// Returns an empty trie for the same sequences and of the same capacity.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Trie::new(&self.ends, self.longest, self.capacity)
    }

    /// Returns the number of prefixes and edges kept.
    pub fn len(&self) -> usize {
        self.nodes.len() + self.edges
    }

    /// Returns `true` if nothing has been learned yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the tokens that end a sequence.
    pub fn ends(&self) -> &Arc<[u32]> {
        &self.ends
    }

    /// Returns `θ` of a prefix, as last computed; `None` if it was never visited, which counts as 1.
    pub fn bound(&self, prefix: &[u32]) -> Option<W> {
        self.find(prefix).map(|node| self.nodes[node].bound.clone())
    }

    /// Returns `m` of a prefix; `None` if it was never visited.
    pub fn mass(&self, prefix: &[u32]) -> Option<W> {
        self.find(prefix).map(|node| self.mass_at(node))
    }

    /// Returns the visited prefixes, each before its continuations.
    pub fn prefixes(&self) -> Vec<Vec<u32>> {
        let mut paths: Vec<Vec<u32>> = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let mut path = node
                .parent
                .map(|parent| paths[parent].clone())
                .unwrap_or_default();
            let edges = node
                .parent
                .map(|parent| self.nodes[parent].edges.as_slice())
                .unwrap_or_default();
            path.extend(
                edges
                    .iter()
                    .find(|edge| edge.node == Some(index))
                    .map(|edge| edge.token),
            );
            paths.push(path);
        }
        paths
    }

    /// Returns `true` if it is known that no valid sequence has any probability.
    pub(in crate::law) fn is_hopeless(&self) -> bool {
        self.nodes.first().is_some_and(|root| !root.bound.is_positive())
    }

    fn find(&self, prefix: &[u32]) -> Option<usize> {
        let root = (!self.nodes.is_empty()).then_some(0);
        prefix.iter().try_fold(root?, |node, &token| {
            self.nodes[node]
                .edges
                .iter()
                .find(|edge| edge.token == token)?
                .node
        })
    }

    /// Returns how many attempts have begun, over all walks that share this trie, modulo 2³².
    pub fn attempts(&self) -> u32 {
        self.clock as u32
    }

    /// Begins an attempt and returns its handle and time: nothing is forgotten while the handle lives.
    pub(super) fn begin(&mut self) -> (Arc<()>, u64) {
        if self.len() >= self.capacity && Arc::strong_count(&self.in_flight) == 1 {
            self.forget();
        }
        self.clock += 1;
        (self.in_flight.clone(), self.clock)
    }

    /// Returns the allowed tokens at this depth: the whole mask, or at the last position the tokens of the
    /// mask that end the sequence.
    pub(super) fn possible(&self, allowed: Allowed<'_>, depth: u32, len: usize) -> Vec<u32> {
        if depth + 1 < self.longest {
            return allowed.to_words(len).into_owned();
        }
        let mut words = vec![0; len.div_ceil(32)];
        for &end in self
            .ends
            .iter()
            .filter(|&&end| (end as usize) < len && allowed.contains(end))
        {
            words[end as usize / 32] |= 1 << (end % 32);
        }
        words
    }

    /// Returns the visited prefix at a spot.
    pub(super) fn node_at(&self, spot: Spot) -> Option<usize> {
        match spot {
            Spot::Root => (!self.nodes.is_empty()).then_some(0),
            Spot::Below { node, edge } => self.nodes[node].edges[edge].node,
            Spot::Untracked => None,
        }
    }

    /// Records a first visit, by an attempt that began at this time; `None` if there is no room.
    pub(super) fn visit(&mut self, spot: Spot, mass: W, time: u64) -> Option<usize> {
        if self.len() >= self.capacity {
            return None;
        }
        let index = self.nodes.len();
        let parent = match spot {
            Spot::Root => None,
            Spot::Below { node, edge } => {
                self.nodes[node].edges[edge].node = Some(index);
                Some(node)
            }
            Spot::Untracked => return None,
        };
        self.nodes.push(TrieNode {
            rest: mass.clone(),
            bound: mass,
            parent,
            edges: Vec::new(),
            used: time,
        });
        Some(index)
    }

    /// Records another visit and recomputes `θ`.
    pub(super) fn revisit(&mut self, node: usize, time: u64) -> W {
        self.nodes[node].used = self.nodes[node].used.max(time);
        self.refresh(node);
        self.nodes[node].bound.clone()
    }

    /// Recomputes `θ` from the values directly below.
    pub(super) fn refresh(&mut self, node: usize) {
        let edges = self.edge_bounds(node);
        self.nodes[node].bound = self.nodes[node].rest.clone() + sum(&edges);
    }

    /// Returns `p·θ` of every edge.
    pub(super) fn edge_bounds(&self, node: usize) -> Vec<W> {
        let bound = |edge: &TrieEdge<W>| match edge.node {
            Some(child) => edge.weight.clone() * self.nodes[child].bound.clone(),
            None => edge.weight.clone(),
        };
        self.nodes[node].edges.iter().map(bound).collect()
    }

    /// Returns the allowed mass on tokens without an edge.
    pub(super) fn rest(&self, node: usize) -> W {
        self.nodes[node].rest.clone()
    }

    /// Returns `m`, from the numbers of the first visit.
    pub(super) fn mass_at(&self, node: usize) -> W {
        let node = &self.nodes[node];
        node.rest.clone() + sum(node.edges.iter().map(|edge| &edge.weight))
    }

    /// Returns the tokens that have an edge.
    pub(super) fn edge_tokens(&self, node: usize) -> impl Iterator<Item = u32> {
        self.nodes[node].edges.iter().map(|edge| edge.token)
    }

    /// Returns the token of an edge, and `θ` below it.
    pub(super) fn follow(&self, node: usize, edge: usize) -> (u32, W) {
        let edge = &self.nodes[node].edges[edge];
        (
            edge.token,
            edge.node
                .map_or_else(W::one, |child| self.nodes[child].bound.clone()),
        )
    }

    /// Moves a token out of the rest to a new edge. Of the rest, the token has `share` and the other tokens
    /// `without`.
    pub(super) fn split(&mut self, node: usize, token: u32, share: W, without: W) -> Spot {
        if self.len() >= self.capacity {
            return Spot::Untracked;
        }
        self.edges += 1;
        let node_ref = &mut self.nodes[node];
        let weight = node_ref.rest.clone() * share;
        node_ref.rest = node_ref.rest.clone() * without;
        node_ref.edges.push(TrieEdge {
            token,
            weight,
            node: None,
        });
        Spot::Below {
            node,
            edge: node_ref.edges.len() - 1,
        }
    }

    /// Records that nothing valid follows a prefix; returns `false` if there is no room.
    pub(super) fn condemn(&mut self, spot: Spot) -> bool {
        let known = self.node_at(spot);
        let Some(node) = known.or_else(|| self.visit(spot, W::zero(), 0)) else {
            return false;
        };
        self.nodes[node].rest = W::zero();
        for edge in &mut self.nodes[node].edges {
            edge.weight = W::zero();
        }
        self.report(node);
        true
    }

    /// Recomputes `θ` from this prefix up to the root.
    pub(super) fn report(&mut self, node: usize) {
        let mut next = Some(node);
        while let Some(node) = next {
            self.refresh(node);
            next = self.nodes[node].parent;
        }
    }

    /// Keeps the more recently visited half of the prefixes, or fewer if many were visited at once.
    fn forget(&mut self) {
        let mut times: Vec<u64> = self.nodes.iter().map(|node| node.used).collect();
        times.sort_unstable();
        let limit = times.get(times.len() / 2).copied().unwrap_or(0);
        let mut moved = vec![None; self.nodes.len()];
        let mut kept: Vec<TrieNode<W>> = Vec::new();
        for (index, mut node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            if node.used > limit {
                moved[index] = Some(kept.len());
                // A visitor of a prefix also visited those before it, so the parent of a kept node was kept.
                node.parent = node.parent.and_then(|parent| moved[parent]);
                kept.push(node);
            }
        }
        self.nodes = kept;
        self.edges = 0;
        for index in (0..self.nodes.len()).rev() {
            self.drop_edges(index, &moved);
            self.refresh(index);
        }
    }

    /// Returns the weight of edges to forgotten or unvisited prefixes to the rest.
    fn drop_edges(&mut self, index: usize, moved: &[Option<usize>]) {
        let node = &mut self.nodes[index];
        for mut edge in std::mem::take(&mut node.edges) {
            edge.node = edge.node.and_then(|child| moved[child]);
            match edge.node {
                Some(_) => node.edges.push(edge),
                None => node.rest = node.rest.clone() + edge.weight,
            }
        }
        self.edges += node.edges.len();
    }
}
