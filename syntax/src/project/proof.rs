//! Proves how a projection relates to its schema, independently of how it was written.
//!
//! The schema of the restored answers is compared with the source by the algebra of schemas. Where options
//! close objects of the source, it is compared with the closed schema instead, written from the normal forms
//! without any loss and proven to be within the source.

use serde_json::Value;

use lexiform_automata::error::ProblemKind;
use lexiform_automata::limits::Limits;

use crate::schema::{Inclusion, NormalForms, Options, inclusion};

use super::fit::fit;
use super::form::Reading;
use super::loss::{Effect, Loss, Toward};
use super::profile::Profile;
use super::write::write;

/// How the restored answers of a target relate to the values of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// They are the same.
    Equal,
    /// There are more of them: answers have to be validated.
    Wider,
    /// There are fewer of them.
    Narrower,
    /// There are some that the schema does not have, and some of the schema are missing.
    Neither,
}

impl Relation {
    pub(super) fn of(losses: &[Loss]) -> Relation {
        let has = |effect| losses.iter().any(|loss| loss.effect == effect);
        match (has(Effect::Wider), has(Effect::Narrower)) {
            (false, false) => Relation::Equal,
            (true, false) => Relation::Wider,
            (false, true) => Relation::Narrower,
            (true, true) => Relation::Neither,
        }
    }

    /// Returns its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Relation::Equal => "equal",
            Relation::Wider => "wider",
            Relation::Narrower => "narrower",
            Relation::Neither => "neither",
        }
    }
}

/// Whether a relation has been proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// The algebra of schemas decided it.
    Proven,
    /// It follows from how the schema was written, and the algebra cannot decide it.
    Open,
}

/// Returns what relations to a schema are proven against: the schema, or the one whose objects are closed
/// where options close them. `None` if that one cannot be written.
pub(super) fn compared(
    source: &Value,
    normal: &NormalForms,
    options: &Options,
    limits: &Limits,
) -> Option<Value> {
    let is_closed = normal.notes.iter().any(|note| note.kind == ProblemKind::Closed);
    match is_closed {
        false => Some(source.clone()),
        true => {
            closed_source(source, normal, limits).filter(|closed| within(closed, source, options, limits))
        }
    }
}

/// Proves the relation that the losses leave. What is written as null because it may be absent counts as
/// optional here: that it is always there is the one loss that this does not compare.
pub(super) fn prove(
    source: &Value,
    restored: &Value,
    losses: &[Loss],
    options: &Options,
    limits: &Limits,
) -> Proof {
    let has = |effect| {
        losses
            .iter()
            .any(|loss| loss.effect == effect && !loss.is_absence)
    };
    let is_said = !has(Effect::Narrower) || !has(Effect::Wider);
    let is_proven = is_said
        && (has(Effect::Narrower) || within(source, restored, options, limits))
        && (has(Effect::Wider) || within(restored, source, options, limits));
    match is_proven {
        true => Proof::Proven,
        false => Proof::Open,
    }
}

/// Returns the schema with its closed objects closed, if nothing is lost on the way.
fn closed_source(source: &Value, normal: &NormalForms, limits: &Limits) -> Option<Value> {
    let everything = Profile::everything();
    let fitted = fit(normal, source, &everything, Toward::Wider, &limits.cancel);
    let is_whole = fitted.losses.is_empty() && fitted.recodings.is_empty();
    is_whole
        .then(|| write(&fitted.forms, &everything, Reading::Restored, &limits.cancel))
        .flatten()
}

/// Returns `true` if every value of one schema is proven to be one of the other. What was written is a schema
/// of our own, and may be one that the compiler refuses.
fn within(inner: &Value, outer: &Value, options: &Options, limits: &Limits) -> bool {
    matches!(inclusion(inner, outer, options, limits), Ok(Inclusion::Proven))
}
