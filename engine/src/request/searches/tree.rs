//! The prefixes of a search: a tree of tokens, each node of which may have a branch of the request and a row
//! of the model.
//!
//! ```text
//!   root ─ "a" ─┬─ "b"  held: its row is known, its branch has the keys and values
//!               └─ "c"  held: no branch any more, so it is computed again from the nearest node above that has one
//! ```
//!
//! A search *holds* the nodes that it needs. A node that is no longer held loses its row at once, and its
//! branch to a child or to other nodes; it remains as a part of the path to nodes that are held.

use crate::request::driver::{Branch, Ranked};
use lexiform::vocab::{TokenKind, Vocabulary};
use std::collections::HashMap;
use std::sync::Arc;

/// The number of a node.
pub(crate) type Node = usize;

/// The node of the empty answer, which always exists.
pub(crate) const ROOT: Node = 0;

/// The known continuations of a prefix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The likeliest allowed tokens, the likeliest first; then those requested by name.
    pub(crate) ranked: Vec<Ranked>,
    /// The number of likeliest tokens requested.
    pub(crate) count: usize,
    /// The fewest tokens that complete the text, its end included, if requested and known.
    pub(crate) distance: Option<usize>,
}

/// What the tokens of a text write. Token sequences that write the same are one text, whether they have ended
/// or have reached the maximum length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct WrittenText {
    bytes: Vec<u8>,
    /// The special tokens, which write no bytes, each with the number of bytes before it.
    specials: Vec<(usize, u32)>,
}

impl WrittenText {
    fn push(&mut self, step: &Ranked, vocabulary: &Vocabulary) {
        let token = step.drawn.token;
        match vocabulary.kind(token) {
            _ if step.ends => (),
            TokenKind::Text | TokenKind::Mark => self.bytes.extend_from_slice(vocabulary.bytes(token)),
            TokenKind::Special | TokenKind::Unused => self.specials.push((self.bytes.len(), token)),
        }
    }
}

#[derive(Debug, Default)]
struct Prefix {
    parent: Node,
    /// The token that leads here from the parent; `None` for the root.
    step: Option<Ranked>,
    tokens: usize,
    log_probability: f64,
    seen: Option<Seen>,
    branch: Option<Branch>,
    /// The number of holds, and the number of nodes whose parent it is.
    holds: usize,
    children: usize,
    /// The time at which its branch was last used.
    used: u64,
}

/// The prefixes of one request.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Prefix>,
    free: Vec<Node>,
    by_step: HashMap<(Node, u32), Node>,
    /// Nodes with a branch that are no longer held.
    released: Vec<Node>,
    longest: usize,
    now: u64,
    vocabulary: Arc<Vocabulary>,
}

impl Tree {
    /// Returns the tree of answers of at most `longest` tokens of a vocabulary. Its root is held, and has
    /// branch 0.
    pub(crate) fn new(longest: usize, vocabulary: Arc<Vocabulary>) -> Self {
        let root = Prefix {
            branch: Some(0),
            holds: 1,
            ..Prefix::default()
        };
        Tree {
            nodes: vec![root],
            free: Vec::new(),
            by_step: HashMap::new(),
            released: Vec::new(),
            longest,
            now: 0,
            vocabulary,
        }
    }

    /// Returns the number of tokens of a prefix.
    pub(crate) fn tokens(&self, node: Node) -> usize {
        self.nodes[node].tokens
    }

    /// Returns the maximum number of tokens of an answer.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Returns `ln P` of a prefix.
    pub(crate) fn log_probability(&self, node: Node) -> f64 {
        self.nodes[node].log_probability
    }

    /// Returns the likeliest continuations of a prefix, as far as they are known.
    pub(crate) fn ranked(&self, node: Node) -> &[Ranked] {
        self.nodes[node].seen.as_ref().map_or(&[], |seen| &seen.ranked)
    }

    /// Returns the fewest tokens that complete a prefix, its end included, if requested and known.
    pub(crate) fn distance(&self, node: Node) -> Option<usize> {
        self.nodes[node].seen.as_ref()?.distance
    }

    /// Returns `true` if no other tokens than those of [`ranked`](Self::ranked) may come next.
    pub(crate) fn has_all(&self, node: Node) -> bool {
        let seen = self.nodes[node].seen.as_ref();
        seen.is_some_and(|seen| seen.ranked.len() < seen.count)
    }

    /// Returns `true` if at least the `count` likeliest continuations were requested and are known.
    pub(crate) fn knows(&self, node: Node, count: usize) -> bool {
        let seen = self.nodes[node].seen.as_ref();
        seen.is_some_and(|seen| seen.count >= count)
    }

    /// Returns `true` if a prefix is a text that can be reported: it has ended, or has reached the maximum
    /// length.
    pub(crate) fn is_final(&self, node: Node) -> bool {
        let prefix = &self.nodes[node];
        prefix.tokens >= self.longest || prefix.step.as_ref().is_some_and(|step| step.ends)
    }

    /// Returns what a prefix writes.
    pub(crate) fn text(&self, node: Node) -> WrittenText {
        let mut path = Vec::with_capacity(self.nodes[node].tokens);
        let mut at = node;
        while let Some(step) = &self.nodes[at].step {
            path.push(step);
            at = self.nodes[at].parent;
        }
        let mut text = WrittenText::default();
        path.into_iter()
            .rev()
            .for_each(|step| text.push(step, &self.vocabulary));
        text
    }

    /// Returns what a prefix, which writes `text`, writes together with one more token.
    pub(crate) fn text_with(&self, text: &WrittenText, step: &Ranked) -> WrittenText {
        let mut longer = text.clone();
        longer.push(step, &self.vocabulary);
        longer
    }

    /// Returns the prefix extended by a token, and holds it once more. The same token leads to the same node.
    pub(crate) fn child(&mut self, parent: Node, step: &Ranked) -> Node {
        if let Some(&node) = self.by_step.get(&(parent, step.drawn.token)) {
            self.hold(node);
            return node;
        }
        let prefix = Prefix {
            parent,
            tokens: self.nodes[parent].tokens + 1,
            log_probability: self.nodes[parent].log_probability + step.drawn.log_probability,
            step: Some(step.clone()),
            holds: 1,
            ..Prefix::default()
        };
        self.nodes[parent].children += 1;
        let node = self.free.pop().unwrap_or(self.nodes.len());
        match self.nodes.get_mut(node) {
            Some(place) => *place = prefix,
            None => self.nodes.push(prefix),
        }
        self.by_step.insert((parent, step.drawn.token), node);
        node
    }

    /// Adds a hold to a node.
    pub(crate) fn hold(&mut self, node: Node) {
        self.nodes[node].holds += 1;
    }

    /// Removes a hold from a node.
    pub(crate) fn release(&mut self, node: Node) {
        let prefix = &mut self.nodes[node];
        prefix.holds = prefix.holds.saturating_sub(1);
        if prefix.holds > 0 {
            return;
        }
        prefix.seen = None;
        match prefix.branch {
            Some(_) => self.released.push(node),
            None => self.forget(node),
        }
    }

    /// Removes a node that is not needed any more, and the ancestors that only it needed.
    fn forget(&mut self, mut node: Node) {
        while node != ROOT {
            let Prefix {
                parent,
                step: Some(step),
                holds: 0,
                children: 0,
                branch: None,
                ..
            } = &self.nodes[node]
            else {
                return;
            };
            let parent = *parent;
            self.by_step.remove(&(parent, step.drawn.token));
            self.nodes[node] = Prefix::default();
            self.free.push(node);
            self.nodes[parent].children -= 1;
            node = parent;
        }
    }

    /// Stores the model's row after a prefix.
    pub(super) fn see(&mut self, node: Node, seen: Seen) {
        self.nodes[node].seen = Some(seen);
    }

    /// Returns the nearest node from this one upwards that has a branch.
    pub(super) fn donor(&self, mut node: Node) -> (Node, Option<Branch>) {
        while self.nodes[node].branch.is_none() && node != ROOT {
            node = self.nodes[node].parent;
        }
        (node, self.nodes[node].branch)
    }

    /// Returns the tokens between two nodes, of which the first is on the path to the second.
    pub(super) fn steps(&self, from: Node, mut to: Node) -> Vec<Ranked> {
        let mut steps = Vec::with_capacity(self.nodes[to].tokens - self.nodes[from].tokens);
        while to != from {
            steps.extend(self.nodes[to].step.clone());
            to = self.nodes[to].parent;
        }
        steps.reverse();
        steps
    }

    /// Sets or removes the branch of a node.
    pub(super) fn set_branch(&mut self, node: Node, branch: Option<Branch>) {
        self.nodes[node].branch = branch;
        self.touch(node);
    }

    /// Marks a node's branch as used now.
    pub(super) fn touch(&mut self, node: Node) {
        self.now += 1;
        self.nodes[node].used = self.now;
    }

    /// Returns `true` if a node is not held.
    pub(super) fn is_released(&self, node: Node) -> bool {
        self.nodes[node].holds == 0
    }

    /// Removes and returns the branches of nodes that are not held.
    pub(super) fn take_released(&mut self) -> Vec<Branch> {
        let released = std::mem::take(&mut self.released);
        let mut branches = Vec::new();
        for node in released {
            if self.nodes[node].holds > 0 {
                continue;
            }
            branches.extend(self.nodes[node].branch.take());
            self.forget(node);
        }
        branches
    }

    /// Returns the nodes with a branch except the root and those in `but`, the least recently used first.
    pub(super) fn idle(&self, but: &[Node]) -> Vec<Node> {
        let has_branch = |node: &Node| self.nodes[*node].branch.is_some() && !but.contains(node);
        let mut nodes: Vec<Node> = (1..self.nodes.len()).filter(has_branch).collect();
        nodes.sort_by_key(|&node| self.nodes[node].used);
        nodes
    }

    /// Returns all branches.
    pub(super) fn branches(&self) -> impl Iterator<Item = Branch> + '_ {
        self.nodes.iter().filter_map(|prefix| prefix.branch)
    }
}
