//! `tilt`: a callback that scores texts, under laws that weigh texts.

use lexiform_engine::Law;

use super::Task;
use crate::wire::constraint::callbacks::Named;
use crate::wire::fields::{Fields, Problems};

/// The score by which texts weigh more or less.
#[derive(Clone, Debug, PartialEq)]
pub struct Tilt {
    /// The callback that is asked for scores.
    pub callback: Named,
    /// `true` if unfinished texts are scored, too.
    pub prefixes: bool,
}

/// Takes the field.
pub(super) fn read(fields: &mut Fields, task: &Task, problems: &mut Problems) -> Option<Tilt> {
    let mut inner = fields.object("tilt", problems)?;
    let prefixes = inner.boolean("prefixes", problems).unwrap_or(false);
    if prefixes && !matches!(task, Task::Draw(Law::Smc { .. })) {
        problems.invalid(
            inner.path("prefixes"),
            "requires law: smc, which resamples unfinished texts",
        );
    }
    let callback = Named::read(inner, "callback", &[], problems)?;
    Some(Tilt { callback, prefixes })
}
