//! The numbers of samples that a request draws, and of those that it returns.

use super::Generation;
use super::choose::Choose;
use crate::wire::fields::Problems;

impl Generation {
    /// Returns the number of samples that the engine returns for each prompt: the answers, or all samples if
    /// they have to be read to choose among them.
    pub fn samples(&self) -> usize {
        match self.choose {
            Choose::Likeliest => self.n.max(1),
            _ => self.best_of.unwrap_or(self.n).max(1),
        }
    }

    /// Returns the number of candidates of which the engine returns the likeliest.
    pub fn candidates(&self) -> Option<usize> {
        self.best_of
            .filter(|best_of| self.choose == Choose::Likeliest && *best_of > self.n)
    }

    /// Reports the settings that samples to choose among cannot have.
    pub(super) fn check_choice(&self, problems: &mut Problems) {
        let Some(best_of) = self.best_of else { return };
        let is_chosen = self.choose != Choose::Likeliest;
        if best_of < self.n {
            problems.invalid("best_of", "must be at least n");
        } else if (best_of > self.n || is_chosen) && self.stream.is_some() {
            problems.invalid(
                "best_of",
                "best_of cannot be streamed: the best candidates are known only when all have ended",
            );
        }
        if is_chosen && self.weights {
            problems.invalid("weights", "a sample that was chosen among others has no weight");
        }
    }
}
