//! How far the chances of predictors are right, as measured by the fate of their drafts.

use crate::draft::Origin;

/// The lower ends of the steps in which chances are counted, except the first.
const STEPS: [f32; 5] = [0.2, 0.4, 0.6, 0.8, 0.95];
/// The weight that earlier drafts keep after one more.
const KEPT: f32 = 0.99;
/// The number of drafts that the chance that a predictor gives counts for.
const PRIOR: f32 = 8.0;
/// The part of its chances that Token Recycling is taken to be right about at first: it gives those of the
/// last row after a token, which another text may have led to.
const RECYCLED: f32 = 0.7;

/// The measured success of the candidates of each origin, by the chance that their predictor gave them.
///
/// Predictors do not mean the same by a chance: one counts, another takes it from a row of the model. To
/// choose between them, chances are compared by how often candidates like these were drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    /// The origins that were judged, each with the drafts and the confirmed drafts of each step.
    counts: Vec<(Origin, [(f32, f32); STEPS.len() + 1])>,
}

fn step(chance: f32) -> usize {
    STEPS.iter().filter(|&&step| chance >= step).count()
}

impl Trust {
    /// Learns the fate of a candidate.
    pub(super) fn judge(&mut self, origin: Origin, chance: f32, is_confirmed: bool) {
        let known = self.counts.iter().position(|(known, _)| *known == origin);
        let known = known.unwrap_or_else(|| {
            self.counts.push((origin, Default::default()));
            self.counts.len() - 1
        });
        let (judged, confirmed) = &mut self.counts[known].1[step(chance)];
        *judged = KEPT * *judged + 1.0;
        *confirmed = KEPT * *confirmed + f32::from(u8::from(is_confirmed));
    }

    /// Returns how likely a candidate is to be drawn.
    pub(super) fn of(&self, origin: Origin, chance: f32) -> f32 {
        let assumed = match origin {
            Origin::Recycled => RECYCLED * chance,
            _ => chance,
        };
        let counts = self.counts.iter().find(|(known, _)| *known == origin);
        let (judged, confirmed) = counts.map_or((0.0, 0.0), |(_, steps)| steps[step(chance)]);
        (confirmed + PRIOR * assumed) / (judged + PRIOR)
    }
}
