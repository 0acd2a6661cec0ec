//! Fields that are valid and have no effect beside the other fields of their request. The answer names them
//! among the ignored ones.

use lexiform_engine::Law;

use super::{Generation, Task};
use crate::wire::fields::{Fields, Problems};

impl Generation {
    /// Returns `true` if tokens are drafted for this request. A search ranks or compares what it computes,
    /// and drafts nothing. Particles are resampled at the positions that all of them have reached in a pass,
    /// which with drafts depends on what was fed, and a request with a seed must get the same text with or
    /// without.
    pub fn drafts(&self) -> bool {
        let is_drawn = match &self.task {
            Task::Search(_) => false,
            Task::Draw(Law::Smc { .. }) => self.seed.is_none(),
            Task::Draw(_) => true,
        };
        !self.draft.is_off() && is_drawn
    }

    /// Returns `true` if tokens of the prompt, the answer and the prediction are copied as drafts.
    pub fn copies(&self) -> bool {
        self.drafts() && self.draft.allowed.lookup
    }

    /// Returns `true` if the answers have a weight when they are drawn at this temperature.
    pub fn has_weights_at(&self, temperature: f32) -> bool {
        let is_best = self.best_of.is_some_and(|best_of| best_of > self.n);
        let has_law = match &self.task {
            Task::Search(_) | Task::Draw(Law::Mcmc { .. } | Law::Aprad { .. } | Law::Lossy(_)) => false,
            Task::Draw(_) => !is_best,
        };
        has_law && temperature > 0.0
    }

    /// Records the fields that have no effect. `fields` were read into this request; `wants_drafts` is
    /// `true` if they have `draft`, whatever it says.
    pub(in crate::wire) fn note_ineffective(
        &self,
        wants_drafts: bool,
        fields: &Fields,
        problems: &mut Problems,
    ) {
        let has_weights = self.has_weights_at(self.temperature.unwrap_or(1.0));
        for (name, is_lost) in [
            ("weights", self.weights && !has_weights),
            ("seed", self.seed.is_some() && self.task.ranks()),
            ("draft", wants_drafts && !self.draft.is_off() && !self.drafts()),
        ] {
            if is_lost {
                problems.ignore(&fields.path(name));
            }
        }
    }
}
