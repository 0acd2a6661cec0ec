//! The likeliest paths of the whole tree.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Shape;
use super::frontier::Frontier;
use crate::draft::{Candidate, Constraint, Draft, NodeId, Predictor, Text};

/// Repeatedly adds the likeliest node that is not in the tree.
///
/// The chance of a node is the product of the chances along its path, so the tree is the one whose expected
/// number of accepted tokens is the largest of all trees of its size, if the chances are right. This is the
/// tree that SpecExec ([Svirschevski et al. 2024](https://arxiv.org/abs/2406.02532)) builds from its draft
/// model, by the same search for shortest paths, and DySpec's ([Xiong et al.
/// 2024](https://arxiv.org/abs/2410.11744)) greedy one for candidates that are chosen without chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestFirst {
    /// Paths less likely than this are left out.
    pub least: f32,
}

/// A node that may be added.
struct OpenCandidate {
    chance: f32,
    /// Among equal chances the first one found wins.
    number: usize,
    parent: Option<NodeId>,
    candidate: Candidate,
}

impl Ord for OpenCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_chance = self.chance.total_cmp(&other.chance);
        by_chance.then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for OpenCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OpenCandidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OpenCandidate {}

impl<C: Constraint, Q> Shape<C, Q> for BestFirst {
    fn grow(
        &self,
        predictor: &dyn Predictor,
        text: Text<'_>,
        below: Option<NodeId>,
        draft: &mut Draft<'_, C, Q>,
    ) {
        let mut frontier = Frontier::new(predictor, text, draft);
        let (mut open, mut number) = (BinaryHeap::new(), 0);
        let mut next = Some((below, 1.0));
        while let Some((parent, above)) = next {
            for candidate in frontier.candidates(parent) {
                let chance = above * candidate.chance;
                if chance >= self.least {
                    open.push(OpenCandidate {
                        chance,
                        number,
                        parent,
                        candidate,
                    });
                    number += 1;
                }
            }
            next = loop {
                let Some(best) = open.pop() else { return };
                if frontier.room() == 0 {
                    return;
                }
                if let Some(node) = frontier.add(best.parent, &best.candidate) {
                    break Some((Some(node), best.chance));
                }
            };
        }
    }
}
