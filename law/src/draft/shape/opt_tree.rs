//! OPT-Tree: layer by layer, the likeliest nodes.

use super::Shape;
use super::frontier::Frontier;
use crate::draft::{Candidate, Constraint, Draft, NodeId, Predictor, Text};

/// Keeps the likeliest nodes of each layer, and stops where another layer adds too little ([Wang et al.
/// 2024](https://arxiv.org/abs/2406.17276)).
///
/// A layer is one pass of a draft model, which is the cost that the paper saves; as long as no layer is cut,
/// the tree is the same as that of [`BestFirst`](super::BestFirst).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptTree {
    /// The number of nodes kept of a layer.
    pub width: usize,
    /// A layer must add more than this to the expected number of accepted tokens. The paper takes 0.5 for a
    /// draft model, whose passes cost more than a predictor's.
    pub least_gain: f32,
}

/// A node of a layer, with the number of its parent in the tree of candidates, which is not yet a draft.
struct Planned {
    above: Option<usize>,
    candidate: Candidate,
    chance: f32,
}

impl<C: Constraint, Q> Shape<C, Q> for OptTree {
    fn grow(
        &self,
        predictor: &dyn Predictor,
        text: Text<'_>,
        below: Option<NodeId>,
        draft: &mut Draft<'_, C, Q>,
    ) {
        let mut frontier = Frontier::new(predictor, text, draft);
        let mut layer = vec![(below, 1.0)];
        loop {
            let mut planned: Vec<Planned> = Vec::new();
            for (at, &(node, chance)) in layer.iter().enumerate() {
                planned.extend(frontier.candidates(node).into_iter().map(|candidate| Planned {
                    above: Some(at),
                    chance: chance * candidate.chance,
                    candidate,
                }));
            }
            // A stable sort keeps the order of equal chances.
            planned.sort_by(|one, other| other.chance.total_cmp(&one.chance));
            planned.truncate(self.width.min(frontier.room()));
            let gain: f32 = planned.iter().map(|planned| planned.chance).sum();
            if gain <= self.least_gain {
                return;
            }
            let add = |planned: Planned| -> Option<(Option<NodeId>, f32)> {
                let parent = planned.above.and_then(|above| layer[above].0);
                let node = frontier.add(parent, &planned.candidate)?;
                Some((Some(node), planned.chance))
            };
            layer = planned.into_iter().filter_map(add).collect();
        }
    }
}
