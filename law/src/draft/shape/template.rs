//! A fixed tree of ranks.

use super::Shape;
use super::frontier::Frontier;
use crate::draft::{Constraint, Draft, NodeId, Predictor, Text};

/// The ranks that have nodes: the likeliest child of the text, the second child of that, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The parent and the rank below it, in an order in which parents come first.
    nodes: Vec<(Option<usize>, usize)>,
}

impl Template {
    /// Creates the tree of these nodes, each with the number of its parent, which comes before it, and its
    /// rank among the children of that parent.
    ///
    /// Returns `None` if a node does not come after its parent.
    pub fn new(nodes: Vec<(Option<usize>, usize)>) -> Option<Template> {
        let mut numbered = nodes.iter().enumerate();
        let is_tree = numbered.all(|(number, (above, _))| above.is_none_or(|above| above < number));
        is_tree.then_some(Template { nodes })
    }

    /// Creates a chain of this many nodes.
    pub fn chain(length: usize) -> Template {
        Template::of((0..length).map(|node| (node.checked_sub(1), 0)).collect())
    }

    /// Creates the tree of nodes that come after their parents.
    pub(super) fn of(nodes: Vec<(Option<usize>, usize)>) -> Template {
        Template { nodes }
    }

    /// Returns the parent and the rank of each node.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (Option<usize>, usize)> + '_ {
        self.nodes.iter().copied()
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns `true` if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

impl<C: Constraint, Q> Shape<C, Q> for Template {
    fn grow(
        &self,
        predictor: &dyn Predictor,
        text: Text<'_>,
        below: Option<NodeId>,
        draft: &mut Draft<'_, C, Q>,
    ) {
        let mut frontier = Frontier::new(predictor, text, draft);
        let below_text = frontier.candidates(below);
        // For each node: its node in the draft, and the candidates below it.
        let mut grown: Vec<Option<(NodeId, Vec<_>)>> = Vec::with_capacity(self.nodes.len());
        for &(above, rank) in &self.nodes {
            let place = match above.map(|above| grown[above].as_ref()) {
                None => Some((below, &below_text)),
                Some(None) => None,
                Some(Some((node, candidates))) => Some((Some(*node), candidates)),
            };
            let candidate = place.and_then(|(parent, candidates)| Some((parent, *candidates.get(rank)?)));
            let node = candidate.and_then(|(parent, candidate)| frontier.add(parent, &candidate));
            let node = node.map(|node| (node, frontier.candidates(Some(node))));
            grown.push(node);
        }
    }
}
