//! The options of a request, weighed in as few passes as their tree requires.
//!
//! ```text
//!   prompt ─ feed the first nodes of the tree ─► rows ─► ln p of each node below them
//!          ─ feed the next ones ─► …                                      ─► Σ along each option
//! ```
//!
//! A piece of the tree is fed below the prompt like a draft, together with the nodes between, which are fed
//! again. If these would take a large part of the pass, the branch first advances to a node further down, the
//! root of the piece, and keeps the keys and values of the path there; afterwards it is rewound. Leaf nodes
//! are not fed, because their weights are in the rows of their parents, and neither are nodes that the
//! grammar forbids. If only the likeliest options are requested, [`Likeliest`] chooses which nodes are fed.

use super::likeliest::Likeliest;
use super::{Branch, BranchEvent, Driver, Of, Order, Orders, Report, Weight};
use crate::error::EngineError;
use crate::request::options::{Options, Weighed};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The share of a piece, as a divisor, that may be nodes which were fed before.
const FED_AGAIN: usize = 4;

/// Weighs the options of a request.
pub(crate) struct Ranking {
    options: Arc<Options>,
    /// The maximum number of nodes of a piece.
    most: usize,
    with_ends: bool,
    nodes: Vec<Option<Weight>>,
    ends: Vec<Option<Weight>>,
    /// `true` for each node whose row has been read.
    is_done: Vec<bool>,
    /// The index below which all nodes are done, or need not be fed.
    next: usize,
    /// The search for the likeliest options, if only those are requested.
    likeliest: Option<Likeliest>,
    /// The node that the branch is at.
    at: usize,
    /// The piece to feed once the branch is at its root.
    piece: Vec<usize>,
}

impl Ranking {
    /// Returns a driver that weighs options in pieces of at most `most` nodes; with or without the ends of
    /// the options; all of them, or only the given number of the likeliest.
    pub(crate) fn new(options: Arc<Options>, most: usize, with_ends: bool, likeliest: Option<usize>) -> Self {
        let nodes = options.nodes();
        Ranking {
            options,
            most: most.max(1),
            with_ends,
            nodes: vec![None; nodes],
            ends: vec![None; nodes],
            is_done: vec![false; nodes],
            next: 0,
            likeliest: likeliest.map(|count| Likeliest::new(count, nodes)),
            at: 0,
            piece: Vec::new(),
        }
    }

    /// Returns `true` if the row of a node is needed.
    fn is_wanted(&self, node: usize) -> bool {
        let ends = self.with_ends && self.options.is_end(node);
        !self.is_done[node] && (ends || !self.options.below(node).is_empty())
    }

    /// Advances to the next node whose row is needed; returns `None` if there is no other.
    fn advance(&mut self) -> Option<usize> {
        if let Some(likeliest) = &self.likeliest {
            return likeliest.next(|node| self.is_wanted(node));
        }
        while self.next < self.options.nodes() {
            let node = self.next;
            let is_forbidden = self.nodes[node].is_some_and(|weight| !weight.is_allowed);
            match (is_forbidden, self.is_wanted(node)) {
                (true, _) => self.next = self.options.below(node).end,
                (_, true) => return Some(node),
                (_, false) => self.next += 1,
            }
        }
        None
    }

    /// Returns the root of the piece that begins with a node: close enough to it that few nodes are fed
    /// again, and no further down than that.
    fn root_for(&self, node: usize) -> usize {
        let above = self.options.parent(node);
        let depth = self.options.depth(above).saturating_sub(self.most / FED_AGAIN);
        self.options.ancestor(above, depth)
    }

    /// Returns the nodes to feed below a root: as many of the next ones as there is room for, with the nodes
    /// between.
    fn piece_below(&self, root: usize) -> Vec<usize> {
        if let Some(likeliest) = &self.likeliest {
            return likeliest.piece(&self.options, (root, self.most), |node| self.is_wanted(node));
        }
        let mut piece = BTreeSet::new();
        for node in self.options.below(root).filter(|&node| node >= self.next) {
            if !self.is_wanted(node) {
                continue;
            }
            let missing = self
                .options
                .between(root, node)
                .take_while(|node| !piece.contains(node));
            let missing: Vec<usize> = missing.collect();
            if piece.len() + missing.len() > self.most {
                break;
            }
            piece.extend(missing);
        }
        piece.into_iter().collect()
    }

    /// Orders the next piece, or ends the request. If a pass brought nothing because there was no room for
    /// the nodes between, the branch advances to the node itself, which requires room for only one token at a
    /// time.
    fn go_on(&mut self, branch: Branch, brought: bool, orders: &mut Orders) {
        let Some(node) = self.advance() else {
            orders.extend([Order::Rewind { branch, to: 0 }, Order::End(branch)]);
            return;
        };
        let root = match (node, brought) {
            (0, _) => 0,
            (_, true) => self.root_for(node),
            (_, false) => node,
        };
        self.piece = self.piece_below(root);
        let depth = self.options.depth(root).min(self.options.depth(self.at));
        let mut common = self.options.ancestor(root, depth);
        let mut left = self.options.ancestor(self.at, depth);
        while common != left {
            (common, left) = (self.options.parent(common), self.options.parent(left));
        }
        if common != self.at {
            let to = self.options.depth(common);
            orders.push_back(Order::Rewind { branch, to });
        }
        self.at = root;
        orders.push_back(match common == root {
            true => self.weigh(branch),
            false => Order::Score {
                branch,
                tokens: self.options.path(common, root),
            },
        });
    }

    fn weigh(&mut self, branch: Branch) -> Order {
        Order::Weigh {
            branch,
            root: self.at,
            nodes: std::mem::take(&mut self.piece),
        }
    }

    /// Records the weights of a pass; returns `true` if any of them was new.
    fn note(&mut self, weights: &[Weight]) -> bool {
        let mut is_new = false;
        for weight in weights {
            let (known, row) = match weight.of {
                Of::Node(node) => (&mut self.nodes[node], self.options.parent(node)),
                Of::End(node) => (&mut self.ends[node], node),
            };
            self.is_done[row] = true;
            // The first value is kept: a recomputed one may differ in its last digits.
            if known.is_none() {
                *known = Some(*weight);
                is_new = true;
                self.tell_likeliest(weight, row);
            }
        }
        is_new
    }

    fn tell_likeliest(&mut self, weight: &Weight, row: usize) {
        let Some(likeliest) = &mut self.likeliest else {
            return;
        };
        let log_probability = match weight.is_allowed {
            true => weight.log_probability,
            false => f64::NEG_INFINITY,
        };
        match weight.of {
            Of::End(node) => likeliest.found(node, log_probability),
            Of::Node(node) => {
                likeliest.note(node, row, log_probability);
                if !self.with_ends && self.options.is_end(node) {
                    likeliest.found(node, 0.0);
                }
            }
        }
    }

    /// Returns the weight of the sequence that ends at a node: `ln p` and `ln` of its share.
    fn weight_of(&self, node: usize) -> (f64, f64) {
        let above = |&node: &usize| (node != 0).then(|| self.options.parent(node));
        let path = std::iter::successors(Some(node), above).filter(|node| *node != 0);
        let end = self.with_ends.then(|| self.ends[node]);
        let nothing = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        path.map(|node| self.nodes[node])
            .chain(end)
            .fold((0.0, 0.0), |sum, weight| {
                let (p, share) = match weight {
                    Some(weight) if weight.is_allowed => (weight.log_probability, weight.log_share),
                    _ => nothing,
                };
                (sum.0 + p, sum.1 + share)
            })
    }

    /// Returns the options whose probability is known, in order.
    fn known(&self) -> impl Iterator<Item = Weighed> {
        let is_known = |end: &usize| match self.with_ends {
            true => self.ends[*end].is_some(),
            false => *end == 0 || self.nodes[*end].is_some(),
        };
        let options = self.options.ends().iter().enumerate();
        let known = options.filter(move |(_, ends)| ends.iter().all(is_known));
        known.map(|(option, ends)| self.weigh_option(option, ends))
    }

    fn weigh_option(&self, option: usize, ends: &[usize]) -> Weighed {
        let each: Vec<(f64, f64)> = ends.iter().map(|&end| self.weight_of(end)).collect();
        Weighed {
            option,
            log_probability: log_sum(each.iter().map(|(log_probability, _)| *log_probability)),
            log_share: log_sum(each.iter().map(|(_, log_share)| *log_share)),
        }
    }

    fn fail(error: &EngineError, branch: Branch, orders: &mut Orders) {
        let error = error.clone();
        orders.extend([Order::Fail { answer: 0, error }, Order::Drop(branch)]);
    }
}

impl Driver for Ranking {
    fn next(&mut self, report: &Report, orders: &mut Orders) {
        let branch = report.branch;
        match &report.event {
            BranchEvent::Begun => self.go_on(branch, true, orders),
            BranchEvent::Scored if report.tokens == self.options.depth(self.at) => {
                let order = self.weigh(branch);
                orders.push_back(order);
            }
            BranchEvent::Scored => {
                let place = self.options.depth(self.at);
                let tokens = report.tokens;
                let told = 0;
                Self::fail(&EngineError::NoSuchPlace { place, tokens, told }, branch, orders);
            }
            BranchEvent::Weighed => {
                let brought = self.note(&report.weighed);
                self.go_on(branch, brought, orders);
            }
            BranchEvent::Ended(_) => orders.push_back(Order::Finish { branch, answer: 0 }),
            BranchEvent::Failed(error) => Self::fail(error, branch, orders),
            BranchEvent::Read | BranchEvent::Drew | BranchEvent::Ranked => (),
        }
    }

    fn leave(&mut self, _: usize, orders: &mut Orders) {
        orders.push_back(Order::Drop(0));
    }

    fn weighed(&self) -> Option<(Vec<Weighed>, usize)> {
        let tokens = self.nodes.iter().flatten().count();
        let Some(likeliest) = &self.likeliest else {
            let options = self.options.ends().iter().enumerate();
            let all = options.map(|(option, ends)| self.weigh_option(option, ends));
            return Some((all.collect(), tokens));
        };
        let mut known: Vec<Weighed> = self.known().collect();
        // The sort is stable, so the first of several equal options comes first.
        known.sort_by(|one, other| other.log_probability.total_cmp(&one.log_probability));
        known.truncate(likeliest.count());
        Some((known, tokens))
    }

    fn branch_of(&self, _: usize) -> Option<Branch> {
        Some(0)
    }
}

/// Returns `ln` of the sum of numbers that are given by their logs. A single one is returned unchanged.
pub(crate) fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + logs.map(|log| (log - most).exp()).sum::<f64>().ln()
}
