//! A drafter made from a predictor and a shape.

use super::Shape;
use crate::draft::{Constraint, Draft, Drafter, Predictor, Text};

/// Drafts the candidates of a predictor in a shape.
#[derive(Clone, Debug)]
pub struct Predicted<P, S> {
    /// The source of candidates.
    pub predictor: P,
    /// The rule that chooses which candidates are drafted.
    pub shape: S,
}

impl<C, Q, P, S> Drafter<C, Q> for Predicted<P, S>
where
    C: Constraint,
    P: Predictor,
    S: Shape<C, Q>,
{
    fn propose(&mut self, text: Text<'_>, draft: &mut Draft<'_, C, Q>) {
        let below = draft.nodes().len().checked_sub(1);
        self.shape.grow(&self.predictor, text, below, draft);
    }
}
