//! Asks an endpoint for many items at a time.
//!
//! ```text
//!   jobs ──► threads: ask, judge ──► records, in the order in which they are ready
//! ```

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::endpoint::Endpoint;
use super::fault::persist;
use super::item::{Arm, Item, Verdict};
use super::record::{Outcome, Record};
use super::wire::{self, Sampling};
use crate::failure::Failure;
use crate::input::hash;

/// The number of failures of the endpoint in a row after which the run stops: the rest would fail as well.
const GIVE_UP: usize = 20;

/// An item to be asked in an arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) item: &'a Item,
    pub(super) arm: Arm,
}

/// How items are asked.
pub(super) struct Runner<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) model: &'a str,
    pub(super) sampling: &'a Sampling,
    /// The number of requests at a time.
    pub(super) concurrency: usize,
    /// The attempts after the first.
    pub(super) retries: usize,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Everything was asked.
    Complete,
    /// The endpoint failed so often in a row that the rest was not asked.
    GaveUp,
}

/// What the threads of a run share.
struct Shared<'a> {
    jobs: &'a [Job<'a>],
    next: AtomicUsize,
    is_over: AtomicBool,
}

impl Runner<'_> {
    /// Asks for all jobs, in their order, and passes each record to `keep`.
    ///
    /// # Errors
    /// `keep` fails, which ends the run.
    pub(super) fn run(
        &self,
        jobs: &[Job<'_>],
        mut keep: impl FnMut(Record) -> Result<(), Failure>,
    ) -> Result<End, Failure> {
        let shared = Shared {
            jobs,
            next: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        };
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(self.concurrency);
            for _ in 0..self.concurrency.min(jobs.len()) {
                let (shared, sender) = (&shared, sender.clone());
                scope.spawn(move || self.work(shared, &sender));
            }
            drop(sender);
            let end = collect(receiver, jobs.len(), &mut keep);
            // Threads that wait for an answer end after it.
            shared.is_over.store(true, Ordering::Relaxed);
            end
        })
    }

    fn work(&self, shared: &Shared<'_>, sender: &SyncSender<Record>) {
        while !shared.is_over.load(Ordering::Relaxed) {
            let Some(job) = shared.jobs.get(shared.next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            if sender.send(self.record(job)).is_err() {
                return;
            }
        }
    }

    fn record(&self, job: &Job<'_>) -> Record {
        let body = wire::body(job.item, job.arm, self.model, self.sampling).to_string();
        let (result, retried) = persist(self.retries, || self.endpoint.ask(&body), thread::sleep);
        let outcome = match result {
            Ok(answer) => Outcome::Answered {
                judged: (job.item.judge)(&answer.text),
                answer: Box::new(answer),
            },
            Err(fault) => Outcome::Failed(fault),
        };
        Record {
            name: job.item.name.clone(),
            arm: job.arm,
            request: hash::hex(body.as_bytes()),
            outcome,
            retried,
        }
    }
}

/// Passes on the records of the threads until there are no more, or too many in a row are failures.
fn collect(
    receiver: Receiver<Record>,
    jobs: usize,
    keep: &mut impl FnMut(Record) -> Result<(), Failure>,
) -> Result<End, Failure> {
    let progress = Progress::new(jobs);
    let mut failures_in_row = 0;
    for record in receiver {
        failures_in_row = if record.is_open() { failures_in_row + 1 } else { 0 };
        progress.add(&record);
        keep(record)?;
        if failures_in_row == GIVE_UP {
            return Ok(End::GaveUp);
        }
    }
    Ok(End::Complete)
}

/// The progress on standard error; hidden if that is no terminal.
struct Progress {
    bar: ProgressBar,
    start: Instant,
    valid: Cell<u64>,
}

impl Progress {
    fn new(jobs: usize) -> Self {
        let bar = ProgressBar::new(jobs as u64);
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}");
        Self {
            bar: style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style)),
            start: Instant::now(),
            valid: Cell::new(0),
        }
    }

    fn add(&self, record: &Record) {
        let is_valid = matches!(
            &record.outcome,
            Outcome::Answered { judged, .. } if judged.verdict == Verdict::Valid
        );
        let valid = self.valid.get() + u64::from(is_valid);
        self.valid.set(valid);
        self.bar.inc(1);
        let done = self.bar.position();
        let rest = self.bar.length().unwrap_or(done).saturating_sub(done);
        let left = left(self.start.elapsed(), done, rest);
        let message = format!("{valid} valid, {} left", HumanDuration(left));
        self.bar.set_message(message);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Returns how long the rest takes if it takes as long as what this run has done. The lines of earlier runs
/// are not counted: they took no time.
fn left(elapsed: Duration, done: u64, rest: u64) -> Duration {
    match done {
        0 => Duration::ZERO,
        done => elapsed.mul_f64(rest as f64 / done as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_work_so_far() {
        let minute = Duration::from_secs(60);
        assert_eq!(left(minute, 10, 30), 3 * minute);
        assert_eq!(left(minute, 10, 0), Duration::ZERO);
        assert_eq!(left(minute, 0, 5), Duration::ZERO);
    }
}
