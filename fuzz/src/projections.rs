//! Schemas projected to every profile: what is written is taken by the profile, and no drawn value
//! contradicts the relation.

use lexiform::limits::Limits;
use lexiform::project::{Profile, Projector, Toward, refusals, tested};
use lexiform::schema::Options;

use crate::clock::{COMPILE, within};
use crate::judge;

/// The values that are drawn from each side.
const DRAWS: usize = 6;
/// The longest schema from which values are drawn: longer ones would spend a run on few inputs.
const DRAWN_BYTES: usize = 2_000;

/// Bytes as a schema.
pub fn project(input: &[u8]) {
    if let Ok(text) = str::from_utf8(input) {
        check(text);
    }
}

/// Bytes as choices of a small schema.
pub fn shaped(input: &[u8]) {
    check(&judge::shown(input));
}

fn check(text: &str) {
    let (options, limits) = (Options::for_generation(), Limits::default());
    let Ok(projector) = within(COMPILE, "reading a schema", || {
        Projector::new(text, &options, &limits)
    }) else {
        return;
    };
    for profile in Profile::names().filter_map(Profile::named) {
        for toward in [Toward::Wider, Toward::Narrower] {
            let project = || projector.project(&profile, toward, &limits);
            let Ok(projection) = within(COMPILE, "a projection", project) else {
                continue;
            };
            let written = projection.schema().to_string();
            let refused = refusals(&written, &profile, &limits);
            let refused = refused.unwrap_or_else(|error| error.problems);
            assert!(
                refused.is_empty(),
                "finding: {} does not take {written}, written for {text}: {}",
                profile.name,
                refused[0]
            );
            // What a target takes as it is has its objects closed by whoever reads it so.
            if projection.is_unchanged() || text.len() > DRAWN_BYTES {
                continue;
            }
            // A schema whose grammar a limit refuses cannot be drawn from.
            if let Ok(found) = tested(text, &projection, &options, &limits, DRAWS, 1) {
                assert!(
                    found.contradictions.is_empty(),
                    "finding: {text} is said to be {:?} for {}, as {written}: {:?}",
                    projection.relation(),
                    profile.name,
                    found.contradictions[0]
                );
            }
        }
    }
}
