//! What draws of drafts from the rows of stores depend on, as plain data that any thread can work with.

use crate::speculation::draft::{Confidence, Source};
use crate::speculation::policy::record::LEARNED;
use crate::speculation::policy::stakes::Stakes;
use lexiform_law::draft::{Candidate, Origin};
use lexiform_law::{Allowed, History, Law, LawError, Part, Place, Row, Seeded, Warper, Warping};
use std::sync::Arc;

/// The number of tokens of a pass that may be drawn at one position. Draws of one pass have rounds of their
/// own, and those of the next pass begin after them.
const A_PASS: u32 = 32;
/// The first of the rounds of these draws: those before are of a draft model.
const ROUNDS: u32 = 1 << 23;

/// How tokens are drawn from the rows of stores.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    pub(crate) chooser: Seeded,
    /// The place of the first draw after the text.
    pub(crate) place: Place,
    pub(crate) tempering: Tempering,
    pub(crate) stakes: Stakes,
    /// The probability that a drawn token is confirmed, by its kind.
    pub(crate) chances: Vec<f64>,
    /// The probability that a copy is confirmed.
    pub(crate) copied: f64,
}

impl Draws {
    /// Returns the place of the draws after the text, given how many tokens of the answer were drafted.
    pub(crate) fn first(place: Place, drafted: usize) -> Place {
        let round = (drafted as u32).wrapping_mul(A_PASS) & (ROUNDS - 1);
        place.round(ROUNDS | round)
    }

    /// Returns the source of a token that is drawn among candidates of which this one is the likeliest, and
    /// the probability that it is confirmed.
    pub(crate) fn expects(&self, best: &Candidate) -> (Source, f64) {
        let confidence = Confidence::of(Some(best.chance));
        let store = LEARNED.iter().position(|known| *known == best.origin);
        let kind = store.map_or(0, |store| store * Confidence::COUNT + confidence.step());
        let chance = self.chances.get(kind).copied().unwrap_or(0.5);
        (Source::Drawn(best.origin, confidence), chance)
    }
}

/// Turns the chances of candidates into the weights that the request draws with.
///
/// It has the temperature and the filters of the request, applied to what the store knows. Penalties and
/// biases are left out: they only make a row less like the one that verifies it.
#[derive(Clone, Debug)]
pub(crate) struct Tempering(Arc<Warper>);

impl Tempering {
    /// Returns the tempering of a request with this warping.
    ///
    /// # Errors
    /// The warping is out of range, which a checked one is not.
    pub(crate) fn new(of: &Warping) -> Result<Self, LawError> {
        let warping = Warping {
            mirostat: None,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            bias: Vec::new(),
            ..of.clone()
        };
        Ok(Tempering(Arc::new(Warper::new(warping, Law::Local)?)))
    }

    /// Returns the weights of candidates that are allowed, and zero for the others. `learned` is the factor
    /// of the logits whose chances the store has learned.
    pub(crate) fn weights(
        &self,
        candidates: &[Candidate],
        learned: f64,
        is_allowed: impl Fn(u32) -> bool,
    ) -> Vec<f64> {
        let logit = |candidate: &Candidate| {
            let scale = match is_row(candidate.origin) {
                true => learned,
                // A count of tokens that were drawn is what is drawn.
                false => self.0.scale(),
            };
            match is_allowed(candidate.token) {
                true => (f64::from(candidate.chance).ln() / scale) as f32,
                false => f32::NEG_INFINITY,
            }
        };
        let logits: Vec<f32> = candidates.iter().map(logit).collect();
        let row = self.0.row(&logits, History::default());
        row.map_or_else(|_| Vec::new(), |row| row.part(Allowed::All).shares())
    }
}

/// Returns `true` if the chances of a store are those of the model's rows.
fn is_row(origin: Origin) -> bool {
    matches!(origin, Origin::Recycled | Origin::NGram | Origin::Keyed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(origin: Origin) -> Vec<Candidate> {
        let candidate = |(token, chance)| Candidate {
            token,
            chance,
            origin,
        };
        [(7, 0.64), (8, 0.16), (9, 0.04)].map(candidate).to_vec()
    }

    fn weights(warping: Warping, origin: Origin, learned: f64) -> Vec<f64> {
        let tempering = Tempering::new(&warping).unwrap();
        tempering.weights(&candidates(origin), learned, |_| true)
    }

    fn is_near(weights: &[f64], expected: [f64; 3]) {
        let near = |(one, other): (&f64, f64)| (one - other).abs() < 1e-6;
        assert!(weights.iter().zip(expected).all(near), "{weights:?}");
    }

    /// Guards against drafts that are drawn at another temperature than the text.
    #[test]
    fn rows_are_drawn_from_at_the_temperature_of_the_request() {
        let half = || Warping {
            temperature: 0.5,
            ..Warping::default()
        };
        let squared = [0.4096 / 0.4368, 0.0256 / 0.4368, 0.0016 / 0.4368];
        let plain = [0.64 / 0.84, 0.16 / 0.84, 0.04 / 0.84];
        is_near(&weights(half(), Origin::Recycled, 1.0), squared);
        is_near(&weights(half(), Origin::Recycled, 2.0), plain);
        is_near(&weights(half(), Origin::Suffix, 1.0), plain);
        is_near(&weights(Warping::default(), Origin::Recycled, 1.0), plain);
        is_near(
            &weights(Warping::default(), Origin::Recycled, 2.0),
            [0.8 / 1.4, 0.4 / 1.4, 0.2 / 1.4],
        );
    }

    #[test]
    fn filters_cut_what_is_known_and_masks_come_before_them() {
        let filtered = Warping {
            top_k: Some(2),
            repetition_penalty: 3.0,
            bias: vec![(0, -9.0)],
            ..Warping::default()
        };
        is_near(&weights(filtered.clone(), Origin::Keyed, 1.0), [0.8, 0.2, 0.0]);
        let tempering = Tempering::new(&filtered).unwrap();
        let masked = tempering.weights(&candidates(Origin::Keyed), 1.0, |token| token != 7);
        is_near(&masked, [0.0, 0.8, 0.2]);
        assert!(
            tempering
                .weights(&candidates(Origin::Keyed), 1.0, |_| false)
                .is_empty()
        );
    }
}
