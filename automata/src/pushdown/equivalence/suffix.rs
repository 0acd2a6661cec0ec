//! Rules that go on alike from some node on.
//!
//! The members of an object are a rule each, and after the last letter of their keys most go on with the
//! same: a quote, a colon and any string. What is left of a rule is its *suffix*: two nodes have the same one
//! if the same labels lead from them to nodes with the same suffixes.
//!
//! ```text
//!   "name": string      … m ─► e ─► " ─► : ─► string
//!                                   └──────────────── one suffix
//!   "title": string     … l ─► e ─► " ─► : ─► string
//! ```
//!
//! Suffixes are numbered as they are asked for. Nodes from which a rule may come back to where it was have
//! one of their own.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::pushdown::intern::interner::Interner;
use crate::pushdown::plan::analysis::Analysis;
use crate::pushdown::plan::nfa::{Label, Nfa};

/// The suffixes of the nodes of one grammar, found lazily.
#[derive(Debug)]
pub(crate) struct Suffixes {
    of: Box<[AtomicU32]>,
    known: Interner<Box<[(Label, u32)]>>,
}

/// Not found yet.
const UNKNOWN_CLASS: u32 = u32::MAX;

/// The highest bit marks what is a suffix of its own, by the number of its node.
const OWN: u32 = 1 << 31;

/// What has more nodes than this, as a choice between thousands of words, is not followed.
const MOST_NODES: usize = 64;

impl Suffixes {
    pub(crate) fn new(nodes: usize) -> Suffixes {
        Suffixes {
            of: (0..nodes).map(|_| AtomicU32::new(UNKNOWN_CLASS)).collect(),
            known: Interner::default(),
        }
    }

    /// The number of the suffix of a node of a rule. O(nodes up to the end of the rule), for each of them
    /// once, and no more than a constant.
    pub(crate) fn of(&self, nfa: &Nfa, analysis: &Analysis, rule: u32, node: u32) -> u32 {
        let known = |node: u32| self.of[node as usize].load(Ordering::Relaxed);
        if known(node) != UNKNOWN_CLASS {
            return known(node);
        }
        let accept = nfa.rules[rule as usize].accept;
        let (asked, mut followed) = (node, 1);
        let mut path = vec![(node, 0usize)];
        while let Some((at, edge)) = path.last_mut() {
            let node = *at;
            if let Some(next) = nfa.nodes[node as usize].get(*edge) {
                *edge += 1;
                let to = next.to;
                if known(to) != UNKNOWN_CLASS {
                    continue;
                }
                if followed == MOST_NODES {
                    self.settle(asked, asked | OWN);
                    return asked | OWN;
                }
                if path.iter().any(|&(on_path, _)| on_path == to) {
                    // Whatever leads here again has a suffix that only it has.
                    self.settle(to, to | OWN);
                    continue;
                }
                followed += 1;
                path.push((to, 0));
                continue;
            }
            path.pop();
            if known(node) == UNKNOWN_CLASS {
                let is_plain = !analysis.left_corners.contains_key(&node)
                    && (node != accept || nfa.nodes[node as usize].is_empty());
                let suffix = match is_plain {
                    true => self.known.intern(self.edges(nfa, node, node == accept)),
                    false => node | OWN,
                };
                self.settle(node, suffix);
            }
        }
        known(node)
    }

    /// What a suffix is known by. The end of a rule has no edges, and is told from a node that leads nowhere.
    fn edges(&self, nfa: &Nfa, node: u32, ends: bool) -> Box<[(Label, u32)]> {
        let suffix = |to: u32| self.of[to as usize].load(Ordering::Relaxed);
        let edges = nfa.nodes[node as usize]
            .iter()
            .map(|edge| (edge.label, suffix(edge.to)));
        edges
            .chain(ends.then_some((Label::Empty, UNKNOWN_CLASS)))
            .collect()
    }

    fn settle(&self, node: u32, suffix: u32) {
        // Who finds it at the same time finds the same, or numbers that stand for the same.
        self.of[node as usize].store(suffix, Ordering::Relaxed);
    }
}
