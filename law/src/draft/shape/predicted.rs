//! A predictor and a shape as a drafter.

use super::Shape;
use crate::draft::{Constraint, Draft, Drafter, Predictor, Text};

/// Drafts what a predictor finds likely, in a shape.
#[derive(Clone, Debug)]
pub struct Predicted<P, S> {
    /// What may come next.
    pub predictor: P,
    /// Which of it is drafted.
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
