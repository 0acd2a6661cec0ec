//! Requests that run in the engine: all samples of one request are submitted together, the samples of one
//! prompt as one request to the engine, and their events arrive in one channel.
//!
//! A request that is dropped, because its client has disconnected or because the answer is complete, drops
//! its tickets, and with them the sequences in the engine. The channel is unbounded: it holds at most
//! `max_tokens` events per sample, and the engine must never wait for a slow client.
//!
//! Nothing waits forever: a request that is in no pass within the time for queueing, or does not end within
//! the time for answers, ends with an error; so does every request when the server is stopped and the time
//! for draining is over.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use lexiform_engine::{Engine, EngineError, Event, Place, Refusal, Request, Sink, Task, Ticket};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::model::limits::RequestLimits;
use crate::wire::error::ApiError;

/// The time that the engine has to end a request whose time is over, before the request ends without it: the
/// engine knows what was tried in vain.
const GRACE: Duration = Duration::from_secs(1);

/// The kind of a request, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    Answer,
    Search,
}

/// The samples of one request while they are written.
pub struct Running {
    events: UnboundedReceiver<(usize, Event)>,
    tickets: Vec<Option<Ticket>>,
    limits: RequestLimits,
    kind: RequestKind,
    /// When the time for the answer began.
    begun: Instant,
    /// When the time for queueing began.
    submitted: Instant,
    /// The room in the queue, held until the first token, or until the request is known to be in a pass.
    line: Option<Place>,
    timer: Pin<Box<Sleep>>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Running {
    /// Submits all requests, which the engine has checked, or none. Must be called inside the runtime.
    ///
    /// # Errors
    /// Fails if the engine refuses one of them, or if the queue is full.
    pub fn start(engine: &Engine, requests: Vec<Request>, limits: RequestLimits) -> Result<Self, ApiError> {
        Self::start_as_part(engine, requests, limits, Instant::now())
    }

    /// The same for a part of an answer whose time began earlier.
    ///
    /// # Errors
    /// Fails like [`start`](Self::start).
    pub fn start_as_part(
        engine: &Engine,
        requests: Vec<Request>,
        limits: RequestLimits,
        begun: Instant,
    ) -> Result<Self, ApiError> {
        let tokens = requests.iter().map(|request| request.prompt.tokens.len()).sum();
        let owner = requests.first().and_then(|request| request.limits.owner.clone());
        let line = Some(limits.wait_in_line(&owner, tokens)?);
        let is_search = requests
            .iter()
            .any(|request| matches!(request.task, Task::Search { .. }));
        let (sender, events) = unbounded_channel();
        let mut tickets = Vec::with_capacity(requests.len());
        let submitted = Instant::now();
        for mut request in requests {
            request.limits.deadline = Some((begun + limits.answer).into_std());
            let first = tickets.len();
            let sink = |answer| -> Sink {
                let (sender, index) = (sender.clone(), first + answer);
                Box::new(move |event| sender.send((index, event)).is_ok())
            };
            let sinks = (0..request.task.answers()).map(sink).collect();
            let taken = engine.submit_checked(request, sinks).map_err(|refusal| {
                let busy = matches!(refusal, Refusal::Busy { .. });
                limits.turned_away[0].fetch_add(u64::from(busy), Ordering::Relaxed);
                refused(&refusal)
            })?;
            tickets.extend(taken.into_iter().map(Some));
        }
        Ok(Self {
            events,
            tickets,
            kind: if is_search {
                RequestKind::Search
            } else {
                RequestKind::Answer
            },
            begun,
            submitted,
            line,
            timer: Box::pin(tokio::time::sleep_until(submitted + limits.queue)),
            stop: Box::pin(limits.stop.clone().cancelled_owned()),
            limits,
        })
    }

    /// Returns the next event.
    ///
    /// # Errors
    /// Fails if the time is over, the server stops, or no sample can produce an event any more.
    pub async fn next(&mut self) -> Result<(usize, Event), ApiError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Polls for the next event, for streams.
    ///
    /// # Errors
    /// Fails if the time is over, the server stops, or no sample can produce an event any more.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<(usize, Event), ApiError>> {
        match self.events.poll_recv(context) {
            Poll::Ready(Some((_, Event::Failed(EngineError::Late { attempts, .. })))) => {
                return Poll::Ready(Err(self.late(attempts)));
            }
            Poll::Ready(Some(event)) => {
                self.leave_line();
                return Poll::Ready(Ok(event));
            }
            Poll::Ready(None) => return Poll::Ready(Err(ApiError::internal())),
            Poll::Pending => {}
        }
        if self.stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(ApiError::shutting_down()));
        }
        while self.timer.as_mut().poll(context).is_ready() {
            if self.line.is_none() || !self.has_begun() {
                return Poll::Ready(Err(self.late(0)));
            }
            self.leave_line();
        }
        Poll::Pending
    }

    /// Returns `true` if a sample is in a pass. It may produce no event for a long time: a search reports its
    /// answers at its end, and an attempt under the global law when it is accepted.
    fn has_begun(&self) -> bool {
        self.tickets.iter().flatten().any(Ticket::has_begun)
    }

    /// Leaves the queue: from now on the time for answers counts.
    fn leave_line(&mut self) {
        if self.line.take().is_some() {
            let end = self.begun + self.limits.answer + GRACE;
            self.timer.as_mut().reset(end);
        }
    }

    /// Returns the error of a request whose time is over, after so many attempts that failed.
    fn late(&self, attempts: usize) -> ApiError {
        let answer = self.limits.answer.as_secs_f64();
        match self.kind {
            _ if self.line.is_some()
                && !self.has_begun()
                && self.submitted.elapsed() >= self.limits.queue =>
            {
                ApiError::timed_out("waited", self.limits.queue.as_secs_f64(), true)
            }
            RequestKind::Search => ApiError::search_timed_out(answer),
            RequestKind::Answer => ApiError::attempts_timed_out(answer, attempts),
        }
    }

    /// Ends one sample early; its last event still arrives.
    pub fn cancel(&mut self, index: usize) {
        if let Some(ticket) = self.tickets.get_mut(index) {
            *ticket = None;
        }
    }
}

/// Returns the error for a client whose request the engine refused.
pub fn refused(refusal: &Refusal) -> ApiError {
    match refusal {
        Refusal::Busy { limit, .. } => ApiError::queue_full(*limit),
        Refusal::Stopped => ApiError::shutting_down(),
        Refusal::TooLong { .. } => ApiError::invalid(
            "context_length_exceeded",
            Some("messages".to_owned()),
            refusal.to_string(),
        ),
        Refusal::EmptyPrompt | Refusal::UnknownToken { .. } => {
            ApiError::invalid("invalid_value", Some("prompt".to_owned()), refusal.to_string())
        }
        Refusal::TooFew { .. } => ApiError::invalid(
            "budget_too_small",
            Some("max_tokens".to_owned()),
            refusal.to_string(),
        ),
        Refusal::Invalid { name, .. } => {
            let param = match *name {
                "answers" => "n",
                name => name,
            };
            ApiError::invalid("invalid_value", Some(param.to_owned()), refusal.to_string())
        }
        Refusal::Conflict(conflict) => ApiError::invalid(
            "invalid_value",
            Some(conflict.field.to_owned()),
            refusal.to_string(),
        ),
        Refusal::DependsOnOthers { .. } => ApiError::invalid(
            "unsupported_parameter",
            Some("batch_invariant".to_owned()),
            refusal.to_string(),
        ),
        // A refusal that no request can cause is a fault of this server.
        #[allow(unreachable_patterns, reason = "the engine may learn to refuse more")]
        _ => {
            tracing::error!("the engine refused a request: {refusal}");
            ApiError::internal()
        }
    }
}
