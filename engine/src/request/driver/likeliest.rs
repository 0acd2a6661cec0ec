//! The best-first search for the likeliest options: no option is likelier than its prefixes, so a node that
//! is less likely than a known option need not be fed.
//!
//! This finds the same options as weighing all of them, and was proposed for spans of a text that answer a
//! question (exact-extract, *How Optimal is Greedy Decoding for Extractive Question Answering?*, arXiv
//! 2108.05857). A pass has room for more than the nodes whose probability is known, so some nodes below the
//! likeliest of them are fed speculatively.

use crate::request::options::Options;
use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

/// The number of nodes of a piece that are fed before the probability of their parent is known. Each may be
/// wasted.
const GUESSED: usize = 64;
/// The assumed log-probability of a node after its parent, while the real one is not known.
const GUESS: f64 = -1.0;

/// The known part of the search for the likeliest options.
pub(super) struct Likeliest {
    count: usize,
    /// `ln P` of each node; NaN if it is not known, minus infinity if the node is forbidden.
    nodes: Vec<f64>,
    /// `ln P` of the likeliest known options, at most `count`, the largest first.
    best: Vec<f64>,
}

/// A node that may be fed.
struct OpenNode {
    /// An upper bound of the options below the node, or a guess.
    bound: f64,
    node: usize,
    is_guess: bool,
}

impl Likeliest {
    /// Returns the search for `count` options of a tree of `nodes` nodes.
    pub(super) fn new(count: usize, nodes: usize) -> Self {
        let mut known = vec![f64::NAN; nodes];
        known[0] = 0.0;
        Likeliest {
            count,
            nodes: known,
            best: Vec::new(),
        }
    }

    /// Returns the number of options to find.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Records the log-probability of a node after its parent.
    pub(super) fn note(&mut self, node: usize, parent: usize, log_probability: f64) {
        self.nodes[node] = self.nodes[parent] + log_probability;
    }

    /// Records an option that ends at a node, with the log-probability of its end after the node.
    pub(super) fn found(&mut self, node: usize, log_probability: f64) {
        let log_probability = self.nodes[node] + log_probability;
        let place = self.best.partition_point(|known| *known >= log_probability);
        self.best.insert(place, log_probability);
        self.best.truncate(self.count);
    }

    /// Returns the bound below which an option cannot be among the likeliest `count`.
    fn least(&self) -> f64 {
        let last = self.best.get(self.count.saturating_sub(1));
        last.copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Returns `true` if options below a node may be among the likeliest.
    fn may_matter(&self, node: usize) -> bool {
        // NaN compares as not greater.
        self.nodes[node] > self.least()
    }

    /// Returns the likeliest node whose row matters, or `None` if the search is over.
    pub(super) fn next(&self, is_wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let open = (0..self.nodes.len()).filter(|&node| self.may_matter(node) && is_wanted(node));
        open.max_by(|&one, &other| {
            self.nodes[one]
                .total_cmp(&self.nodes[other])
                .then(other.cmp(&one))
        })
    }

    /// Returns the nodes to feed below a root, the likeliest first as far as there is room, together with the
    /// nodes between.
    pub(super) fn piece(
        &self,
        options: &Options,
        (root, most): (usize, usize),
        is_wanted: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let open = options
            .below(root)
            .filter(|&node| self.may_matter(node) && is_wanted(node));
        let mut open: BinaryHeap<OpenNode> = open
            .map(|node| OpenNode {
                bound: self.nodes[node],
                node,
                is_guess: false,
            })
            .collect();
        let guesses = |node: usize, bound: f64| {
            let unknown = options.children(node).filter(|&child| self.nodes[child].is_nan());
            unknown
                .filter(|&child| is_wanted(child))
                .map(move |node| OpenNode {
                    bound: bound + GUESS,
                    node,
                    is_guess: true,
                })
        };
        open.extend(guesses(root, self.nodes[root]));
        let (mut piece, mut guessed) = (BTreeSet::new(), 0);
        while let Some(OpenNode {
            bound,
            node,
            is_guess,
        }) = open.pop()
        {
            guessed += usize::from(is_guess);
            if is_guess && guessed > GUESSED {
                continue;
            }
            let between = options.between(root, node).filter(|node| !piece.contains(node));
            let between: Vec<usize> = between.collect();
            if piece.len() + between.len() > most {
                break;
            }
            piece.extend(between);
            open.extend(guesses(node, bound));
        }
        piece.into_iter().collect()
    }
}

impl Ord for OpenNode {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound
            .total_cmp(&other.bound)
            .then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for OpenNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OpenNode {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OpenNode {}
