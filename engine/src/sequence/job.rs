//! A request in progress: its driver, and the answers that its client receives.

use crate::error::EngineError;
use crate::request::Event;
use crate::request::driver::{Branch, Driver, Orders};
use crate::sequence::Sequence;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Receives the events of one request, one after the other, on a thread of the engine: it must not block.
/// `false` means that the client is gone; its sequence is freed at once.
pub type Sink = Box<dyn FnMut(Event) -> bool + Send>;

/// A request without its running branches.
pub(crate) struct Job {
    pub(crate) driver: Box<dyn Driver>,
    answers: Vec<JobAnswer>,
    /// Branches that have ended and that the driver has not yet reported or dropped.
    ended: Vec<Sequence>,
    /// Branches that have not ended.
    pub(crate) live: usize,
    /// The number of answers that failed, or whose client left.
    pub(crate) failed: u64,
}

/// An answer as its client receives it.
struct JobAnswer {
    sink: Sink,
    /// The number of tokens reported.
    heard: usize,
    /// `true` if the client received the last event, or left.
    closed: bool,
}

impl Job {
    /// Returns a new request, with its first branch live.
    pub(crate) fn new(driver: Box<dyn Driver>, sinks: Vec<Sink>) -> Self {
        let answer = |sink| JobAnswer {
            sink,
            heard: 0,
            closed: false,
        };
        Job {
            driver,
            answers: sinks.into_iter().map(answer).collect(),
            ended: Vec::new(),
            live: 1,
            failed: 0,
        }
    }

    /// Returns the number of answers.
    pub(crate) fn answers(&self) -> usize {
        self.answers.len()
    }

    /// Returns `true` if all answers received their last event.
    pub(crate) fn is_over(&self) -> bool {
        self.answers.iter().all(|answer| answer.closed)
    }

    /// Returns `true` if an answer can receive more.
    pub(crate) fn is_open(&self, answer: usize) -> bool {
        self.answers.get(answer).is_some_and(|answer| !answer.closed)
    }

    /// Keeps a branch that has ended, until it is reported or dropped.
    pub(crate) fn keep(&mut self, sequence: Sequence) {
        self.ended.push(sequence);
    }

    /// Removes and returns branches that have ended.
    pub(crate) fn take_ended(&mut self, which: impl Fn(&Sequence) -> bool) -> Vec<Sequence> {
        self.ended.extract_if(.., |sequence| which(sequence)).collect()
    }

    /// Drops this branch, which has ended and is not needed any more.
    pub(crate) fn drop_ended(&mut self, branch: Branch) {
        let ended = self
            .ended
            .iter_mut()
            .find(|sequence| sequence.id.branch == branch);
        if let Some(sequence) = ended {
            sequence.report.give_up();
        }
    }

    /// Returns a branch that has ended, if there is one.
    pub(crate) fn any_ended(&self) -> Option<&Sequence> {
        self.ended.first()
    }

    /// Reports to an answer the tokens of a branch that it has not received yet. If the client has left, the
    /// driver's reaction is added to the orders.
    ///
    /// # Errors
    /// Fails if the branch does not continue the text that the answer has received.
    pub(crate) fn emit(
        &mut self,
        answer: usize,
        sequence: &mut Sequence,
        orders: &mut Orders,
    ) -> Result<(), EngineError> {
        let Some(JobAnswer {
            heard, closed: false, ..
        }) = self.answers.get_mut(answer)
        else {
            return Ok(());
        };
        let events = sequence.take_events(*heard)?;
        *heard += events.len();
        for event in events {
            self.send(answer, event, orders);
        }
        Ok(())
    }

    /// Reports to an answer that it ended as this branch did.
    pub(crate) fn close(&mut self, answer: usize, sequence: &Sequence, orders: &mut Orders) {
        let mut outcome = sequence.outcome(sequence.report.finished());
        if let Some(verdict) = self.driver.verdict(answer) {
            outcome.law = match sequence.draw.warper.cuts_before_mask() {
                true => verdict.law.filtered(),
                false => verdict.law,
            };
            outcome.log_weight = verdict.log_weight;
            (outcome.diagnostics, outcome.particles) = (verdict.diagnostics, verdict.particles);
        }
        if let Some((weighed, tokens)) = self.driver.weighed() {
            outcome.completion_tokens = tokens;
            (outcome.log_weight, outcome.options) = (None, Some(weighed));
        }
        self.send(answer, Event::Done(outcome), orders);
    }

    /// Sends an event. A client whose sink returns `false` or panics has left.
    pub(crate) fn send(&mut self, number: usize, event: Event, orders: &mut Orders) {
        let Some(answer) = self.answers.get_mut(number).filter(|answer| !answer.closed) else {
            return;
        };
        let is_last = !matches!(event, Event::Token { .. });
        let is_failure = matches!(event, Event::Failed(_));
        let sink = &mut answer.sink;
        let wants_more = catch_unwind(AssertUnwindSafe(|| sink(event))).unwrap_or(false);
        answer.closed = is_last || !wants_more;
        self.failed += u64::from(is_failure || !is_last && !wants_more);
        if !is_last && !wants_more {
            self.driver.leave(number, orders);
        }
    }

    /// Fails all open answers.
    pub(crate) fn fail_all(&mut self, error: &EngineError) {
        for answer in 0..self.answers() {
            self.send(answer, Event::Failed(error.clone()), &mut Orders::new());
        }
    }
}

/// Ensures that the client receives a last event, whatever happens to the request.
impl Drop for Job {
    fn drop(&mut self) {
        self.fail_all(&EngineError::Stopped);
    }
}
