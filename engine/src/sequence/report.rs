//! The report of a sequence: its tokens as events, how it ended, and when.

use crate::error::EngineError;
use crate::fairness::room::Place;
use crate::metrics::meters::Moments;
use crate::request::{Event, Finish};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a branch ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    Finished(Finish),
    Failed(EngineError),
}

/// The events of a sequence that no answer has received yet, and how it ended.
pub(crate) struct ReportState {
    /// Tokens that no answer has received yet.
    events: Vec<Event>,
    /// The number of tokens received before these.
    emitted: usize,
    /// How the sequence ended, once it has.
    ending: Option<Ending>,
    /// `true` if the driver knows that it ended.
    is_ending_reported: bool,
    /// `true` if the grammar left nothing but the end, whose probability was not requested.
    pub(super) ended_unasked: bool,
    /// `true` if the sequence is not continued any more.
    pub(crate) closed: bool,
    /// `true` if its driver does not need it any more.
    pub(crate) dropped: bool,
    /// The place in the queue, held until the sequence runs for the first time. A preempted sequence does not
    /// count as waiting, nor its text as cached.
    pub(crate) place: Option<Place>,
    /// Becomes `true` when the sequence runs, for callers that wait for that.
    pub(crate) begun: Arc<AtomicBool>,
    pub(crate) moments: Moments,
}

impl ReportState {
    pub(super) fn new(place: Place) -> Self {
        ReportState {
            events: Vec::new(),
            emitted: 0,
            ending: None,
            is_ending_reported: false,
            ended_unasked: false,
            closed: false,
            dropped: false,
            place: Some(place),
            begun: Arc::default(),
            moments: Moments::now(),
        }
    }

    /// Returns the report of another branch with the same events. A sequence that has ended can be forked
    /// until it is collected; the fork has not ended.
    pub(super) fn fork(&self) -> Self {
        ReportState {
            events: self.events.clone(),
            emitted: self.emitted,
            ending: None,
            is_ending_reported: false,
            ended_unasked: false,
            closed: false,
            dropped: self.dropped,
            place: None,
            begun: self.begun.clone(),
            moments: self.moments,
        }
    }

    /// Keeps a token for the answers that will receive it.
    pub(crate) fn push(&mut self, token: Event) {
        self.events.push(token);
    }

    /// Removes the events of all but the first `to` tokens of the answer.
    pub(super) fn truncate(&mut self, to: usize) {
        self.events.truncate(to.saturating_sub(self.emitted));
    }

    /// Returns the number of tokens that an answer has received.
    pub(crate) fn emitted(&self) -> usize {
        self.emitted
    }

    /// Returns the events that no answer has received yet.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Takes the events that no answer has received yet.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        self.emitted += self.events.len();
        std::mem::take(&mut self.events)
    }

    /// Puts back these events, the first of the text, for another answer.
    pub(crate) fn untell(&mut self, events: Vec<Event>) {
        (self.events, self.emitted) = (events, 0);
    }

    /// Ends the sequence, unless it has ended.
    pub(super) fn end(&mut self, ending: Ending) {
        self.closed = true;
        self.ending.get_or_insert(ending);
    }

    /// Returns `true` if the text ended by itself or by its length.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.ending, Some(Ending::Finished(Finish::Stop | Finish::Length)))
    }

    /// Drops a sequence that its driver does not need any more.
    pub(crate) fn give_up(&mut self) {
        (self.closed, self.dropped, self.is_ending_reported) = (true, true, true);
    }

    /// Returns how the sequence ended, if its driver does not know that yet.
    pub(crate) fn unreported_ending(&mut self) -> Option<Ending> {
        if self.is_ending_reported {
            return None;
        }
        self.is_ending_reported = self.ending.is_some();
        self.ending.clone()
    }

    /// Returns `true` if the sequence has ended and its driver does not know that yet.
    pub(crate) fn has_unreported_ending(&self) -> bool {
        self.ending.is_some() && !self.is_ending_reported
    }

    /// Returns why the text ended; for a text that still continues, that it was cancelled.
    pub(crate) fn finished(&self) -> Finish {
        match self.ending {
            Some(Ending::Finished(finish)) => finish,
            _ => Finish::Cancelled,
        }
    }
}
