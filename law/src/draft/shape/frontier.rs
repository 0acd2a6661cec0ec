//! A growing draft: the candidates below a node that the constraint allows, and their nodes.

use crate::draft::{Candidate, Constraint, Context, Draft, NodeId, Predictor, Text};

/// A draft with the inputs that decide its next nodes.
pub(super) struct Frontier<'a, 'c, C: Constraint, Q> {
    predictor: &'a dyn Predictor,
    text: Text<'a>,
    pub(super) draft: &'a mut Draft<'c, C, Q>,
}

/// A place below drafted tokens, or tokens that may be drafted.
pub(super) struct Spot<'c, C: Constraint> {
    /// The tokens after the text.
    pub(super) path: Vec<u32>,
    /// The constraint and its state after them; `None` without a constraint.
    pub(super) at: Option<(&'c C, C::State)>,
}

impl<'c, C: Constraint> Spot<'c, C> {
    /// Returns the place after one more token; `None` if the constraint does not allow it.
    pub(super) fn after(&self, token: u32) -> Option<Self> {
        let at = match self.at {
            Some((constraint, state)) => Some((constraint, constraint.step(state, token)?)),
            None => None,
        };
        let path = [&self.path[..], &[token]].concat();
        Some(Spot { path, at })
    }
}

impl<'a, 'c, C: Constraint, Q> Frontier<'a, 'c, C, Q> {
    pub(super) fn new(predictor: &'a dyn Predictor, text: Text<'a>, draft: &'a mut Draft<'c, C, Q>) -> Self {
        Frontier {
            predictor,
            text,
            draft,
        }
    }

    pub(super) fn room(&self) -> usize {
        self.draft.room_below(None)
    }

    /// Returns the place below a node, or after the text for `None`.
    pub(super) fn spot(&self, node: Option<NodeId>) -> Spot<'c, C> {
        let path = self.draft.path(node).into_iter();
        Spot {
            path: path.map(|node| self.draft.nodes()[node].token).collect(),
            at: self.draft.at(node),
        }
    }

    /// Returns the candidates below a node, if there is room for one.
    pub(super) fn candidates(&self, node: Option<NodeId>) -> Vec<Candidate> {
        match self.draft.room_below(node) {
            0 => Vec::new(),
            _ => self.candidates_at(&self.spot(node)),
        }
    }

    /// Returns the candidates at a place: those that the constraint allows, the likeliest first, rescaled so
    /// that their chances sum to the same total as before.
    ///
    /// A mask moves the probability of forbidden tokens to allowed ones, so the remaining candidates share
    /// the chances of those removed.
    pub(super) fn candidates_at(&self, spot: &Spot<'c, C>) -> Vec<Candidate> {
        let context = Context {
            text: self.text,
            path: &spot.path,
            state: spot.at.map(|(constraint, state)| constraint.key(state)),
        };
        let mut found = Vec::new();
        self.predictor.predict(&context, &mut found);
        let Some((constraint, state)) = spot.at else {
            return found;
        };
        let all: f32 = found.iter().map(|candidate| candidate.chance).sum();
        found.retain(|candidate| constraint.step(state, candidate.token).is_some());
        let left: f32 = found.iter().map(|candidate| candidate.chance).sum();
        if left > 0.0 {
            found
                .iter_mut()
                .for_each(|candidate| candidate.chance *= all / left);
        }
        found
    }

    /// Adds a candidate, unless it is already there. Returns its node; `None` if there is no room.
    pub(super) fn add(&mut self, parent: Option<NodeId>, candidate: &Candidate) -> Option<NodeId> {
        let (token, origin) = (candidate.token, candidate.origin);
        self.draft.offer_likely(parent, token, origin, candidate.chance)
    }
}
