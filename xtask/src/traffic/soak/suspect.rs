//! Requests that did not end well, and what explains them.

use crate::traffic::driver::Seen;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The refusals that may come at any time: a full queue, and two other models that are in use.
const REFUSALS: [&str; 3] = ["queue_full", "no_room_for_model", "model_loading"];

/// What a client saw at the end of a request that did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// No connection, or one that was closed without an answer.
    Silent,
    /// An answer that stops without saying why.
    Cut,
    /// A refusal with this code.
    Refused(String),
    /// An error with this code, within an answer that had begun.
    Told(String),
}

/// What was done to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It was killed, and started again.
    Killed,
    /// It was told to end, had time for what was open, and was started again.
    Drained,
}

/// A span of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: Instant,
    pub(super) until: Instant,
}

impl Span {
    fn meets(self, other: Span) -> bool {
        self.from <= other.until && other.from <= self.until
    }
}

/// All requests that did not end well, and all times at which something was done to the service.
#[derive(Default)]
pub(super) struct Suspects {
    requests: Mutex<Vec<(Span, Ending)>>,
    deeds: Mutex<Vec<(Span, Deed)>>,
}

impl Suspects {
    pub(super) fn note(&self, span: Span, ending: Ending) {
        held(&self.requests).push((span, ending));
    }

    pub(super) fn explain(&self, span: Span, deed: Deed) {
        held(&self.deeds).push((span, deed));
    }

    /// Counts each request by what explains it; one that nothing explains is wrong.
    pub(super) fn judge(&self, seen: &mut Seen) {
        let deeds = held(&self.deeds);
        for (span, ending) in held(&self.requests).iter() {
            let during = |deed| deeds.iter().any(|(when, it)| *it == deed && when.meets(*span));
            let is_killed = during(Deed::Killed);
            match explained(ending, is_killed, during(Deed::Drained)) {
                Some(outcome) => seen.count(outcome),
                None => {
                    seen.count(format!("WRONG: {ending:?}"));
                    seen.wrong.push(format!("nothing explains {ending:?}"));
                }
            }
        }
    }
}

/// Returns the name of an ending that may be, if the service was killed or drained in its time.
fn explained(ending: &Ending, is_killed: bool, is_drained: bool) -> Option<String> {
    match ending {
        Ending::Cut if is_killed => Some("cut off by the kill".to_owned()),
        Ending::Silent if is_killed => Some("not accepted after the kill".to_owned()),
        // What a service that ends has begun it must also finish.
        Ending::Silent if is_drained => Some("not accepted while draining".to_owned()),
        Ending::Refused(code) if code == "shutting_down" => {
            is_drained.then(|| "refused while draining".to_owned())
        }
        Ending::Refused(code) => REFUSALS
            .contains(&code.as_str())
            .then(|| format!("refused: {code}")),
        Ending::Told(_) | Ending::Cut | Ending::Silent => None,
    }
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is a single push, so a panic leaves nothing half written.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_what_was_done_at_its_time_explains_an_ending() {
        let zero = Instant::now();
        let at = |second| zero + Duration::from_secs(second);
        let span = |from, until| Span {
            from: at(from),
            until: at(until),
        };
        let suspects = Suspects::default();
        suspects.explain(span(10, 20), Deed::Killed);
        suspects.explain(span(30, 40), Deed::Drained);
        let shutting = || Ending::Refused("shutting_down".to_owned());
        let cases = [
            (span(5, 11), Ending::Cut, true),
            (span(5, 9), Ending::Cut, false),
            (span(21, 22), Ending::Silent, false),
            (span(35, 36), Ending::Silent, true),
            (span(25, 31), Ending::Cut, false),
            (span(31, 32), shutting(), true),
            (span(12, 13), shutting(), false),
            (span(31, 32), Ending::Told("shutting_down".to_owned()), false),
            (span(1, 2), Ending::Refused("queue_full".to_owned()), true),
            (span(1, 2), Ending::Refused("internal_error".to_owned()), false),
        ];
        for (span, ending, _) in &cases {
            suspects.note(*span, ending.clone());
        }
        let mut seen = Seen::default();
        suspects.judge(&mut seen);
        let wrong = cases.iter().filter(|(.., is_explained)| !is_explained);
        let wrong: Vec<String> = wrong
            .map(|(_, ending, _)| format!("nothing explains {ending:?}"))
            .collect();
        assert_eq!(seen.wrong, wrong);
    }
}
