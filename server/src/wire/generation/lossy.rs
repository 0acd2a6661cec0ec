//! The field `lossy`: drafts that are accepted by how likely they are, for requests that prefer speed to
//! their law.

use lexiform_engine::TypicalAcceptance;

use super::super::fields::{Fields, Problems};
use super::super::law::Law;

/// The largest `delta`. Where it is 1000 only `epsilon` counts, unless the entropy of a place is above 6.9
/// nats.
const DELTA: f64 = 1_000.0;

/// Takes the field: an object whose bounds are those of Medusa unless the request says otherwise.
pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Option<TypicalAcceptance> {
    let mut bounds = fields.object("lossy", problems)?;
    let epsilon = bounds.number("epsilon", 0.0, 1.0, problems).map(f64::from);
    let delta = bounds.number("delta", 0.0, DELTA, problems).map(f64::from);
    bounds.finish_strict(problems);
    let usual = TypicalAcceptance::MEDUSA;
    TypicalAcceptance::new(epsilon.unwrap_or(usual.epsilon()), delta.unwrap_or(usual.delta())).ok()
}

/// What else a request asks for that a text without a law may be at odds with.
pub(super) struct Beside {
    pub(super) law: Law,
    /// What names its search, if it has one.
    pub(super) search: Option<String>,
    pub(super) has_monitors: bool,
    pub(super) has_best_of: bool,
    pub(super) has_weights: bool,
    pub(super) has_drafts: bool,
}

impl Beside {
    /// Notes what `lossy` cannot be combined with.
    pub(super) fn refuse(&self, problems: &mut Problems) {
        if self.law != Law::Local {
            let message = format!("requires law: local, and {} was asked for", self.law.name());
            problems.invalid("lossy", message);
        }
        if let Some(search) = &self.search {
            problems.invalid("lossy", format!("cannot be combined with {search}"));
        }
        let others = [
            (self.has_monitors, "cannot be combined with monitors"),
            (
                self.has_best_of,
                "cannot be combined with best_of, which compares samples of one law",
            ),
            (
                self.has_weights,
                "cannot be combined with weights: a text without a law has none",
            ),
            (
                !self.has_drafts,
                "requires drafts, which draft: false switches off",
            ),
        ];
        for (_, message) in others.into_iter().filter(|(is_there, _)| *is_there) {
            problems.invalid("lossy", message);
        }
    }
}
