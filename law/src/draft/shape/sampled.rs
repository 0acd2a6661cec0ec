//! Trees of tokens that are drawn from what a predictor knows.

use std::sync::Arc;

use super::Template;
use super::frontier::Frontier;
use crate::draft::{Candidate, Constraint, Draft, NodeId, Predictor, Proposal, Text};
use crate::law::{Allowed, Chooser, Part, Place, Purpose, Row, Sparse, Weight};

/// Draws the tokens of a template, as STAND does ([Song et al. 2025](https://arxiv.org/abs/2506.04708)):
/// siblings are drawn without replacement, which is the law of Gumbel-top-k (Kool et al. 2019, arXiv
/// 1903.06059), from the row that the predictor knows there.
///
/// Such a token is verified by the residual rule, under which it is accepted with probability `Σ min(p, q)`:
/// always, if the predictor is right. Its row has only the tokens that the predictor knows
/// ([`Sparse`](crate::law::Sparse)), so that a node costs no row of the vocabulary.
///
/// A node of the template stands for one more draw below its parent; its rank does not matter. So which nodes
/// are offered never depends on the token that is drawn for them, as [`verify`](crate::verify) demands.
#[derive(Clone, Debug)]
pub struct Sampled<F> {
    /// The tree.
    pub template: Template,
    /// Returns the weights with which the candidates at a place are drawn, in their order: the chance of each
    /// to the power of 1 over the temperature, and zero if the mask that verifies the draft does not allow
    /// it. (The constraint has been asked, but its mask may have a budget too.) If all are zero, or there are
    /// none, nothing is drawn there; this may depend on the place and on the candidates.
    pub weigh: F,
}

/// A place at which a token may be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Here<'a, C: Constraint> {
    /// The drafted tokens before it.
    pub path: &'a [u32],
    /// The constraint, with its state there; `None` without a constraint.
    pub at: Option<(&'a C, C::State)>,
}

/// A place below which tokens are drawn.
struct Urn<Q> {
    node: Option<NodeId>,
    /// The number of drafted tokens before it.
    depth: usize,
    candidates: Vec<Candidate>,
    row: Arc<Q>,
    /// The siblings that were drawn before.
    drawn: Vec<u32>,
}

impl<F> Sampled<F> {
    /// Adds the nodes of the template below a node of the draft, or after the text for `None`.
    ///
    /// `first` is the place at which the token after the text would be drawn. Draws have the purpose
    /// [`Draft`](Purpose::Draft), and rounds from that of `first` on, one for each node of the template: a
    /// later pass that may draft for the same positions needs others.
    pub fn grow<C, W, Q>(
        &self,
        predictor: &dyn Predictor,
        text: Text<'_>,
        below: Option<NodeId>,
        draft: &mut Draft<'_, C, Q>,
        first: Place,
        chooser: &mut (impl Chooser<W> + ?Sized),
    ) where
        C: Constraint,
        W: Weight,
        Q: Row<W> + From<Sparse<W>>,
        F: Fn(Here<'_, C>, &[Candidate]) -> Vec<W>,
    {
        let frontier = Frontier::new(predictor, text, draft);
        let mut top = self.urn(&frontier, below);
        // For each node of the template: what is drawn below it.
        let mut urns: Vec<Option<Urn<Q>>> = Vec::with_capacity(self.template.len());
        for (number, (above, _)) in (0..).zip(self.template.nodes()) {
            let urn = match above {
                None => Some(&mut top),
                Some(above) => urns[above].as_mut(),
            };
            let node = urn.and_then(|urn| {
                let place = Place {
                    position: first.position.saturating_add(urn.depth as u32),
                    ..first
                };
                let place = place.to(Purpose::Draft).round(first.round.wrapping_add(number));
                urn.draw(frontier.draft, place, chooser)
            });
            urns.push(node.map(|node| self.urn(&frontier, Some(node))));
        }
    }

    /// Returns what can be drawn below a node.
    fn urn<C, W, Q>(&self, frontier: &Frontier<'_, '_, C, Q>, node: Option<NodeId>) -> Urn<Q>
    where
        C: Constraint,
        W: Weight,
        Q: Row<W> + From<Sparse<W>>,
        F: Fn(Here<'_, C>, &[Candidate]) -> Vec<W>,
    {
        let (spot, candidates) = (frontier.spot(node), frontier.candidates(node));
        let here = Here {
            path: &spot.path,
            at: spot.at,
        };
        let weights = match candidates.is_empty() {
            true => Vec::new(),
            false => (self.weigh)(here, &candidates),
        };
        let tokens = candidates.iter().map(|candidate| candidate.token);
        let row = Sparse::new(tokens.zip(weights));
        let siblings = frontier.draft.nodes().iter();
        let siblings = siblings.filter(|sibling| sibling.parent == node && sibling.proposal.is_sampled());
        Urn {
            node,
            depth: spot.path.len(),
            row: Arc::new(Q::from(row)),
            candidates,
            drawn: siblings.map(|sibling| sibling.token).collect(),
        }
    }
}

impl<Q> Urn<Q> {
    /// Draws a token and offers it; `None` if there is none left, or no room.
    fn draw<C, W>(
        &mut self,
        draft: &mut Draft<'_, C, Q>,
        place: Place,
        chooser: &mut (impl Chooser<W> + ?Sized),
    ) -> Option<NodeId>
    where
        C: Constraint,
        W: Weight,
        Q: Row<W>,
    {
        let mask = Allowed::All.without(&self.drawn, self.row.len());
        let token = self.row.part(Allowed::Words(&mask)).draw(place, chooser)?;
        self.drawn.push(token);
        let candidate = self
            .candidates
            .iter()
            .find(|candidate| candidate.token == token)?;
        let proposal = Proposal::Sampled(self.row.clone());
        draft.offer_below(self.node, token, candidate.origin, proposal)
    }
}
