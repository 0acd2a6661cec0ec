//! Finds rules with the same continuation from some node on.
//!
//! Each property of an object is a rule, and after the last letter of their keys most continue in the same
//! way: a quote, a colon and any string. The rest of a rule is its *suffix*: two nodes have the same suffix
//! if the same labels lead from them to nodes with the same suffixes.
//!
//! ```text
//!   "name": string      … m ─► e ─► " ─► : ─► string
//!                                   └──────────────── one suffix
//!   "title": string     … l ─► e ─► " ─► : ─► string
//! ```
//!
//! Suffixes are numbered on demand. A node from which a rule may return to it has a suffix of its own.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::pushdown::intern::interner::Interner;
use crate::pushdown::plan::analysis::Analysis;
use crate::pushdown::plan::nfa::{Label, Nfa};
use crate::work::spend;

/// The suffixes of the nodes of one grammar, found lazily.
#[derive(Debug)]
pub(crate) struct Suffixes {
    of: Box<[AtomicU32]>,
    known: Interner<Box<[(Label, u32)]>>,
}

/// The suffix is not computed yet.
const UNKNOWN_CLASS: u32 = u32::MAX;

/// The highest bit marks a suffix that belongs to a single node, whose number it contains.
const OWN: u32 = 1 << 31;

/// The maximum number of nodes that are followed; a choice between thousands of words has more.
const MOST_NODES: usize = 64;

impl Suffixes {
    pub(crate) fn new(nodes: usize) -> Suffixes {
        Suffixes {
            of: (0..nodes).map(|_| AtomicU32::new(UNKNOWN_CLASS)).collect(),
            known: Interner::default(),
        }
    }

    /// Returns the number of the suffix of a node of a rule. O(nodes up to the end of the rule), once for
    /// each of them, and bounded by a constant.
    pub(crate) fn of(&self, nfa: &Nfa, analysis: &Analysis, rule: u32, node: u32) -> u32 {
        let known = |node: u32| self.of[node as usize].load(Ordering::Relaxed);
        if known(node) != UNKNOWN_CLASS {
            return known(node);
        }
        let accept = nfa.rules[rule as usize].accept;
        let (asked, mut followed) = (node, 1);
        let mut path = vec![(node, 0usize)];
        while let Some((at, edge)) = path.last_mut() {
            spend(1);
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
                    // A node on a cycle has a suffix of its own.
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

    /// Returns the key of a suffix. The end of a rule has no edges, and is distinguished from a node that
    /// leads nowhere.
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
        // A thread that computes it at the same time finds the same number, or one for the same suffix.
        self.of[node as usize].store(suffix, Ordering::Relaxed);
    }
}
