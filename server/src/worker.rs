//! Between a request and the engine: the samples of one request are submitted together, those of one prompt as one
//! request to the engine, and their events arrive in one channel.
//!
//! A request that is dropped, because its client has gone or because the answer is complete, drops its tickets, and
//! with them the sequences in the engine. The channel has no bound of its own: it holds at most `max_tokens` events a
//! sample, and the engine must never wait for a slow client.
//!
//! Nothing waits for ever: a request that does not begin within the time for queueing, or does not end within the
//! time for answers, ends with an error; so does every request when the server is told to stop and the time for
//! draining is over.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use lexiform_engine::{Engine, EngineError, Event, Owner, Place, Refusal, Request, Room, Sink, Ticket};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::error::ApiError;

/// Requests that may be prepared at a time unless the operator chooses; few threads do it, so most of them wait.
pub const PREPARING: usize = 512;
/// Tokens of prompts that may wait unless the operator chooses.
const WAITING_TOKENS: usize = 1 << 20;

/// How long requests may take, how many tokens of prompts may wait, and the signal to stop.
#[derive(Clone, Debug)]
pub struct Patience {
    /// For reading a request and compiling its constraint.
    pub prepare: Duration,
    /// From the request to its first token.
    pub queue: Duration,
    /// From the request to its end.
    pub answer: Duration,
    prepared: Arc<Room>,
    waiting: Arc<Room>,
    turned_away: Arc<[AtomicU64; 2]>,
    stop: CancellationToken,
}

/// Requests that the queues had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnedAway {
    /// Because too many wait.
    pub requests: u64,
    /// Because too many tokens of prompts wait.
    pub tokens: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            prepare: Duration::from_secs(20),
            queue: Duration::from_secs(30),
            answer: Duration::from_secs(600),
            prepared: Arc::new(Room::new(PREPARING)),
            waiting: Arc::new(Room::new(WAITING_TOKENS)),
            turned_away: Arc::default(),
            stop: CancellationToken::new(),
        }
    }
}

impl Patience {
    /// These times, and room for so many tokens of prompts that wait.
    pub fn new(queue: Duration, answer: Duration, waiting_tokens: usize) -> Self {
        Self {
            queue,
            answer,
            waiting: Arc::new(Room::new(waiting_tokens)),
            ..Self::default()
        }
    }

    /// The same with another time for compiles.
    #[must_use]
    pub fn compiling(self, prepare: Duration) -> Self {
        Self { prepare, ..self }
    }

    /// The same with room for so many requests that are prepared, or wait for it.
    #[must_use]
    pub fn preparing(self, preparing: usize) -> Self {
        Self {
            prepared: Arc::new(Room::new(preparing)),
            ..self
        }
    }

    /// Takes room among the requests that are prepared, until it is dropped.
    ///
    /// # Errors
    /// There is none.
    pub fn prepare(&self, share: &Owner) -> Result<Place, ApiError> {
        let taken = self.prepared.take(share, 1);
        taken.map_err(|_| ApiError::queue_full(self.prepared.limit()))
    }

    /// Ends all running requests with an error.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Tokens of prompts that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.taken()
    }

    /// Requests that the queues had no room for so far.
    pub fn turned_away(&self) -> TurnedAway {
        let [requests, tokens] = &*self.turned_away;
        TurnedAway {
            requests: requests.load(Ordering::Relaxed),
            tokens: tokens.load(Ordering::Relaxed),
        }
    }

    /// The same for a request that wants its answer sooner.
    pub fn shortened(&self, answer: Option<Duration>) -> Self {
        let answer = answer.map_or(self.answer, |wanted| wanted.min(self.answer));
        Self {
            answer,
            queue: self.queue.min(answer),
            ..self.clone()
        }
    }

    /// Takes room for the prompts. A prompt that is larger than all the room may wait alone.
    fn wait_in_line(&self, share: &Owner, tokens: usize) -> Result<Place, ApiError> {
        self.waiting.take(share, tokens).map_err(|_| {
            self.turned_away[1].fetch_add(1, Ordering::Relaxed);
            ApiError::queue_of_tokens_full(self.waiting.limit())
        })
    }
}

/// The samples of one request while they are written.
pub struct Running {
    events: UnboundedReceiver<(usize, Event)>,
    tickets: Vec<Option<Ticket>>,
    patience: Patience,
    begun: Instant,
    /// Room in the queue, until the first token.
    line: Option<Place>,
    timer: Pin<Box<Sleep>>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Running {
    /// Submits all requests, which the engine has checked, or none. Must be called inside the runtime.
    ///
    /// # Errors
    /// The engine refuses one of them, or too much waits.
    pub fn start(engine: &Engine, requests: Vec<Request>, patience: Patience) -> Result<Self, ApiError> {
        let tokens = requests.iter().map(|request| request.prompt.len()).sum();
        let share = requests.first().and_then(|request| request.owner.clone());
        let line = Some(patience.wait_in_line(&share, tokens)?);
        let (sender, events) = unbounded_channel();
        let mut tickets = Vec::with_capacity(requests.len());
        let begun = Instant::now();
        for mut request in requests {
            request.deadline = Some((begun + patience.answer).into_std());
            let first = tickets.len();
            let sink = |answer| -> Sink {
                let (sender, index) = (sender.clone(), first + answer);
                Box::new(move |event| sender.send((index, event)).is_ok())
            };
            let sinks = (0..request.samples).map(sink).collect();
            let taken = engine.submit_checked(request, sinks).map_err(|refusal| {
                let busy = matches!(refusal, Refusal::Busy { .. });
                patience.turned_away[0].fetch_add(u64::from(busy), Ordering::Relaxed);
                refused(&refusal)
            })?;
            tickets.extend(taken.into_iter().map(Some));
        }
        Ok(Self {
            events,
            tickets,
            begun,
            line,
            timer: Box::pin(tokio::time::sleep_until(begun + patience.queue)),
            stop: Box::pin(patience.stop.clone().cancelled_owned()),
            patience,
        })
    }

    /// The next event.
    ///
    /// # Errors
    /// The time is over, the server stops, or no sample can bring an event any more.
    pub async fn next(&mut self) -> Result<(usize, Event), ApiError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// The next event, for streams that are polled.
    ///
    /// # Errors
    /// The time is over, the server stops, or no sample can bring an event any more.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<(usize, Event), ApiError>> {
        match self.events.poll_recv(context) {
            Poll::Ready(Some((_, Event::Failed(EngineError::Late { .. })))) => {
                return Poll::Ready(Err(self.late()));
            }
            Poll::Ready(Some(event)) => {
                if self.line.take().is_some() {
                    self.timer.as_mut().reset(self.begun + self.patience.answer);
                }
                return Poll::Ready(Ok(event));
            }
            Poll::Ready(None) => return Poll::Ready(Err(ApiError::internal())),
            Poll::Pending => {}
        }
        if self.stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(ApiError::shutting_down()));
        }
        if self.timer.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(self.late()));
        }
        Poll::Pending
    }

    fn late(&self) -> ApiError {
        if self.line.is_some() {
            ApiError::timed_out("waited", self.patience.queue.as_secs_f64(), true)
        } else {
            ApiError::timed_out("ran", self.patience.answer.as_secs_f64(), false)
        }
    }

    /// Ends one sample early; its last event still arrives.
    pub fn cancel(&mut self, index: usize) {
        if let Some(ticket) = self.tickets.get_mut(index) {
            *ticket = None;
        }
    }
}

/// What a client is told when the engine does not take its request.
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
            ApiError::invalid("invalid_value", Some((*name).to_owned()), refusal.to_string())
        }
        // A refusal that no request can cause is a fault of this server.
        #[allow(unreachable_patterns, reason = "the engine may learn to refuse more")]
        _ => {
            tracing::error!("the engine refused a request: {refusal}");
            ApiError::internal()
        }
    }
}
