//! The walk through the schemas: which engine is asked when, and what becomes of the answers.

use std::time::Duration;

use super::cases::Case;
use super::dispute::Judge;
use super::process::{Lost, Peer};
use super::protocol::{Answer, Judged, Loaded, Question};
use super::tally::{Outcome, Tally};

/// The engine with which the others are compared.
pub(super) const OURS: &str = "lexiform";

/// An engine in the comparison.
pub(super) struct Entrant {
    pub(super) name: String,
    pub(super) peer: Box<dyn Peer>,
    pub(super) tally: Tally,
    /// The time that it was asked for so far.
    used: Duration,
}

/// The figures of an engine after its walk.
pub(super) struct Finished {
    pub(super) name: String,
    pub(super) tally: Tally,
}

/// What is done with every schema.
pub(super) struct Plan<'a> {
    /// The time in which all schemas should be done. Engines that are too slow for it leave out schemas,
    /// evenly over the collection.
    pub(super) time: Duration,
    /// Compares the masks with Lexiform's.
    pub(super) judge: Option<&'a Judge>,
    /// The number of schemas that two threads walk as well.
    pub(super) threaded: usize,
    /// The time since the beginning.
    pub(super) clock: &'a dyn Fn() -> Duration,
}

impl Entrant {
    /// Ends the process of the engine, and returns its figures.
    pub(super) fn finish(self) -> Finished {
        Finished {
            name: self.name,
            tally: self.tally,
        }
    }

    /// Starts an engine.
    ///
    /// # Errors
    /// The engine cannot read the vocabulary, or does so too slowly.
    pub(super) fn load(name: &str, mut peer: Box<dyn Peer>, load: &Question) -> Result<Self, Lost> {
        let loaded = match peer.ask(load)? {
            Answer::Loaded(loaded) => loaded,
            Answer::Refused { reason } => return Err(Lost::Start { reason }),
            other => return Err(unexpected(&other)),
        };
        Ok(Self::new(name, peer, loaded))
    }

    pub(super) fn new(name: &str, peer: Box<dyn Peer>, loaded: Loaded) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            tally: Tally {
                loaded,
                ..Tally::default()
            },
            used: Duration::ZERO,
        }
    }

    fn judge(&mut self, case: &Case, check: bool) -> Outcome {
        let question = Question::Judge {
            schema: case.schema.clone(),
            instances: case.instances.iter().map(|it| it.tokens.clone()).collect(),
            check,
        };
        match self.peer.ask(&question) {
            Ok(Answer::Judged(judged)) if judged.walks.len() == case.instances.len() => {
                Outcome::Judged(judged)
            }
            Ok(Answer::Refused { reason }) => Outcome::Refused(reason),
            Ok(other) => Outcome::Lost(unexpected(&other).to_string()),
            Err(lost) => Outcome::Lost(lost.to_string()),
        }
    }

    fn try_threads(&mut self) {
        if let Ok(Answer::Threads { ratio: Some(ratio) }) = self.peer.ask(&Question::Threads {}) {
            self.tally.threads.push(ratio);
        }
    }
}

/// Takes an answer to another question for a wrong line.
fn unexpected(answer: &Answer) -> Lost {
    Lost::Protocol {
        line: format!("{answer:?}").chars().take(80).collect(),
    }
}

/// Walks all schemas. `done` is told after each.
pub(super) fn run(entrants: &mut [Entrant], cases: &[Case], plan: &Plan<'_>, mut done: impl FnMut()) {
    let stride = cases.len().div_ceil(plan.threaded.max(1)).max(1);
    for (index, case) in cases.iter().enumerate() {
        let is_threaded = plan.threaded > 0 && index % stride == 0;
        let outcomes = ask_in_turn(entrants, case, index, cases.len(), plan, is_threaded);
        for (entrant, outcome) in entrants.iter_mut().zip(&outcomes) {
            outcome
                .iter()
                .for_each(|outcome| entrant.tally.add(case, outcome));
        }
        compare_with_ours(entrants, case, &outcomes, plan.judge);
        done();
    }
}

/// Asks the engines about a schema. They take turns at going first, so that each finds the caches of the
/// processor as others left them.
fn ask_in_turn(
    entrants: &mut [Entrant],
    case: &Case,
    index: usize,
    all: usize,
    plan: &Plan<'_>,
    is_threaded: bool,
) -> Vec<Option<Outcome>> {
    let mut outcomes = vec![None; entrants.len()];
    let count = entrants.len();
    for turn in 0..count {
        let at = (turn + index) % count;
        let entrant = &mut entrants[at];
        let began = (plan.clock)();
        if !has_time(
            entrant.used,
            began,
            (index + 1) as f64 / all as f64,
            plan.time,
            count,
        ) {
            continue;
        }
        let outcome = entrant.judge(case, plan.judge.is_some());
        if is_threaded && matches!(outcome, Outcome::Judged(_)) {
            entrant.try_threads();
        }
        entrant.used += (plan.clock)().saturating_sub(began);
        outcomes[at] = Some(outcome);
    }
    outcomes
}

/// Returns `true` if an engine may be asked: it used no more than its part of the time so far, or all
/// engines together are in time.
fn has_time(used: Duration, all_used: Duration, part: f64, time: Duration, engines: usize) -> bool {
    let so_far = time.mul_f64(part);
    used <= so_far / engines.max(1) as u32 || all_used <= so_far
}

fn compare_with_ours(
    entrants: &mut [Entrant],
    case: &Case,
    outcomes: &[Option<Outcome>],
    judge: Option<&Judge>,
) {
    let judged = |at: usize| match outcomes.get(at) {
        Some(Some(Outcome::Judged(judged))) => Some(judged),
        _ => None,
    };
    let Some((first, others)) = entrants.split_first_mut().filter(|(first, _)| first.name == OURS) else {
        return;
    };
    let Some(ours): Option<&Judged> = judged(0) else {
        return;
    };
    for (index, other) in others.iter_mut().enumerate() {
        let Some(theirs) = judged(index + 1) else { continue };
        other.tally.add_shared(ours, theirs);
        if let Some(judge) = judge {
            let disputes = &mut other.tally.disputes;
            judge.compare(
                case,
                (ours, &mut *first.peer),
                (theirs, &mut *other.peer),
                disputes,
            );
        }
    }
}
