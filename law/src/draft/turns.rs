//! Several drafters, one after the other.

use super::{Constraint, Draft, Drafter, Text};

/// Runs several drafters in turn; each continues where the one before it stopped.
pub struct InTurn<C, Q>(pub Vec<Box<dyn Drafter<C, Q>>>);

impl<C: Constraint, Q> Drafter<C, Q> for InTurn<C, Q> {
    fn propose(&mut self, text: Text<'_>, draft: &mut Draft<'_, C, Q>) {
        for drafter in &mut self.0 {
            if draft.room() > 0 {
                drafter.propose(text, draft);
            }
        }
    }

    fn observe(&mut self, drafted: usize, accepted: usize) {
        for drafter in &mut self.0 {
            drafter.observe(drafted, accepted);
        }
    }
}
