//! OPT-Tree: the likeliest paths among the likeliest nodes of each layer.

use super::Shape;
use super::frontier::{Frontier, Spot};
use crate::draft::{Candidate, Constraint, Draft, NodeId, Predictor, Text};

/// Extends the likeliest nodes of each layer, keeps the likeliest nodes of all layers, and stops where
/// another layer adds too little ([Wang et al. 2024](https://arxiv.org/abs/2406.17276)).
///
/// A layer is one pass of a draft model, which is the cost that the paper saves. Layers are planned before
/// anything is drafted: of the nodes of all layers those with the likeliest paths become the draft, as many
/// as it has room for. So a layer of few likely tokens does not take the room of deeper ones, and if `width`
/// is at least the room, the tree is as good as that of [`BestFirst`](super::BestFirst), as far as the layers
/// go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptTree {
    /// The number of nodes extended of a layer.
    pub width: usize,
    /// A layer must add more than this to the expected number of accepted tokens of the draft. The paper
    /// takes 0.5 for a draft model, whose passes cost more than a predictor's.
    pub least_gain: f32,
}

/// A node of the tree of candidates, which is not yet a draft.
struct Planned<'c, C: Constraint> {
    /// The number of the node above it; `None` for the first layer.
    above: Option<usize>,
    candidate: Candidate,
    /// The chance of its path.
    chance: f32,
    /// The place below it; `None` if nothing follows it.
    spot: Option<Spot<'c, C>>,
}

impl OptTree {
    /// Returns the nodes of a layer, the likeliest first.
    fn layer<'c, C: Constraint, Q>(
        &self,
        frontier: &Frontier<'_, 'c, C, Q>,
        above: &[(Option<usize>, f32, &Spot<'c, C>)],
    ) -> Vec<Planned<'c, C>> {
        let mut layer: Vec<Planned<'c, C>> = Vec::new();
        for &(above, chance, spot) in above {
            let candidates = frontier.candidates_at(spot).into_iter();
            layer.extend(candidates.map(|candidate| Planned {
                above,
                // A path is never likelier than its beginning, also where rounding has it so.
                chance: chance * candidate.chance.min(1.0),
                candidate,
                spot: None,
            }));
        }
        // A stable sort keeps the order of equal chances.
        layer.sort_by(|one, other| other.chance.total_cmp(&one.chance));
        layer.truncate(self.width);
        layer
    }

    /// Returns the nodes of all layers, those above a node before it.
    fn plan<'c, C: Constraint, Q>(
        &self,
        frontier: &Frontier<'_, 'c, C, Q>,
        below: Option<NodeId>,
    ) -> Vec<Planned<'c, C>> {
        let (room, first) = (frontier.room(), frontier.spot(below));
        let mut planned: Vec<Planned<'c, C>> = Vec::new();
        let (mut begun, mut best) = (0, 0.0);
        loop {
            let open = planned.iter().enumerate().skip(begun);
            let open = open.filter_map(|(at, node)| Some((Some(at), node.chance, node.spot.as_ref()?)));
            let above: Vec<_> = match planned.is_empty() {
                true => vec![(None, 1.0, &first)],
                false => open.collect(),
            };
            let mut layer = self.layer(frontier, &above);
            for node in &mut layer {
                let spot = node
                    .above
                    .map_or(Some(&first), |above| planned[above].spot.as_ref());
                let goes_on = !frontier.draft.is_end(node.candidate.token);
                node.spot = spot
                    .filter(|_| goes_on)
                    .and_then(|spot| spot.after(node.candidate.token));
            }
            begun = planned.len();
            planned.extend(layer);
            let expected = expected(&planned, room);
            // Below no node that there is room for is another one, so layers end, whatever they may gain.
            if expected - best <= self.least_gain.max(0.0) {
                planned.truncate(begun);
                return planned;
            }
            best = expected;
        }
    }
}

/// Returns the expected number of accepted tokens of the likeliest nodes that there is room for.
fn expected<C: Constraint>(planned: &[Planned<'_, C>], room: usize) -> f32 {
    let mut chances: Vec<f32> = planned.iter().map(|node| node.chance).collect();
    chances.sort_by(|one, other| other.total_cmp(one));
    chances.iter().take(room).sum()
}

impl<C: Constraint, Q> Shape<C, Q> for OptTree {
    fn grow(
        &self,
        predictor: &dyn Predictor,
        text: Text<'_>,
        below: Option<NodeId>,
        draft: &mut Draft<'_, C, Q>,
    ) {
        if draft.room_below(below) == 0 {
            return;
        }
        let mut frontier = Frontier::new(predictor, text, draft);
        let planned = self.plan(&frontier, below);
        let mut order: Vec<usize> = (0..planned.len()).collect();
        // Stable: a node comes after the one above it, which is at least as likely.
        order.sort_by(|&one, &other| planned[other].chance.total_cmp(&planned[one].chance));
        let mut drafted: Vec<Option<NodeId>> = vec![None; planned.len()];
        for number in order {
            let node = &planned[number];
            let parent = match node.above {
                None => Some(below),
                Some(above) => drafted[above].map(Some),
            };
            drafted[number] = parent.and_then(|parent| frontier.add(parent, &node.candidate));
        }
    }
}
