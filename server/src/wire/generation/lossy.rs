//! The field `lossy`: drafts that are accepted by how likely they are, for requests that prefer speed over
//! drawing from the exact law.

use lexiform_engine::TypicalAcceptance;

use super::super::fields::{Fields, Problems};

/// The maximum of `delta`. At 1000 only `epsilon` matters, unless the entropy of a position is above 6.9
/// nats.
const DELTA: f64 = 1_000.0;

/// Reads the field, an object whose bounds default to Medusa's.
pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Option<TypicalAcceptance> {
    let mut bounds = fields.object("lossy", problems)?;
    let epsilon = bounds.number("epsilon", 0.0, 1.0, problems).map(f64::from);
    let delta = bounds.number("delta", 0.0, DELTA, problems).map(f64::from);
    bounds.finish_strict(problems);
    let usual = TypicalAcceptance::MEDUSA;
    TypicalAcceptance::new(epsilon.unwrap_or(usual.epsilon()), delta.unwrap_or(usual.delta())).ok()
}
