//! The limits on the time of requests and on the size of the queues, and the signal that ends all requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lexiform::error::CompileError;
use lexiform::limits::Limits;
use lexiform::project::{Profile, refusals};
use lexiform_engine::{Owner, Place, Room};
use tokio_util::sync::CancellationToken;

use crate::operate::metrics::gauges::TurnedAway;
use crate::wire::constraint::{Constraint, Source};
use crate::wire::error::ApiError;

/// The default number of requests that may be in preparation at a time; few threads prepare them, so most of
/// them wait.
pub const PREPARING: usize = 512;
/// The default number of tokens of prompts that may wait.
const WAITING_TOKENS: usize = 1 << 20;

/// The limits on the time of requests and on the tokens of waiting prompts, and the signal to stop.
#[derive(Clone, Debug)]
pub struct RequestLimits {
    /// The time for reading a request and compiling its constraint.
    pub prepare: Duration,
    /// The time from the request to the first pass that includes it.
    pub queue: Duration,
    /// The time from the request to its end.
    pub answer: Duration,
    prepared: Arc<Room>,
    waiting: Arc<Room>,
    /// What schemas may contain, if that is less than the compiler takes.
    accepted: Option<Arc<Profile>>,
    pub(super) turned_away: Arc<[AtomicU64; 2]>,
    pub(super) stop: CancellationToken,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            prepare: Duration::from_secs(20),
            queue: Duration::from_secs(30),
            answer: Duration::from_secs(600),
            prepared: Arc::new(Room::new(PREPARING)),
            waiting: Arc::new(Room::new(WAITING_TOKENS)),
            accepted: None,
            turned_away: Arc::default(),
            stop: CancellationToken::new(),
        }
    }
}

impl RequestLimits {
    /// Creates limits with these times, and room for this many tokens of waiting prompts.
    pub fn new(queue: Duration, answer: Duration, waiting_tokens: usize) -> Self {
        Self {
            queue,
            answer,
            waiting: Arc::new(Room::new(waiting_tokens)),
            ..Self::default()
        }
    }

    /// Changes the time for compilation.
    #[must_use]
    pub fn compiling(self, prepare: Duration) -> Self {
        Self { prepare, ..self }
    }

    /// Changes the number of requests that may be in preparation or wait for it.
    #[must_use]
    pub fn preparing(self, preparing: usize) -> Self {
        Self {
            prepared: Arc::new(Room::new(preparing)),
            ..self
        }
    }

    /// Refuses schemas that have more than a profile takes, as the provider of the profile does.
    #[must_use]
    pub fn accepting(self, profile: Option<Profile>) -> Self {
        Self {
            accepted: profile.map(Arc::new),
            ..self
        }
    }

    /// Checks that the schemas among these constraints have nothing that is not accepted.
    ///
    /// # Errors
    /// Fails with every place of the first schema that has.
    pub fn check_accepted<'a>(
        &self,
        constraints: impl IntoIterator<Item = &'a Constraint>,
    ) -> Result<(), ApiError> {
        let Some(profile) = &self.accepted else {
            return Ok(());
        };
        // `json_object` is no schema of the client's.
        let sent = constraints
            .into_iter()
            .filter(|constraint| constraint.param != "response_format.type");
        for constraint in sent {
            let Source::Schema(text) = &constraint.source else {
                continue;
            };
            let refused = refusals(text, profile, &Limits::default());
            let error = match refused {
                Ok(problems) if problems.is_empty() => continue,
                Ok(problems) => CompileError { problems },
                Err(error) => error,
            };
            return Err(ApiError::constraint(&constraint.subject(), &error));
        }
        Ok(())
    }

    /// Sets the time for queueing to the time for answers, for a single caller that waits for no other.
    #[must_use]
    pub fn alone(self) -> Self {
        Self {
            queue: self.answer,
            ..self
        }
    }

    /// Returns the limits of one model of several: its queue is its own; the times, the room of requests in
    /// preparation and the signal to stop are those of all.
    #[must_use]
    pub fn of_one_model(&self) -> Self {
        Self {
            waiting: Arc::new(Room::new(self.waiting.limit())),
            turned_away: Arc::default(),
            ..self.clone()
        }
    }

    /// Takes room among the requests in preparation, until it is dropped.
    ///
    /// # Errors
    /// Fails if there is no room.
    pub fn prepare(&self, owner: &Owner) -> Result<Place, ApiError> {
        let taken = self.prepared.take(owner, 1);
        taken.map_err(|_| ApiError::queue_full(self.prepared.limit()))
    }

    /// Ends all running requests with an error.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns the number of tokens of waiting prompts.
    pub fn waiting(&self) -> usize {
        self.waiting.taken()
    }

    /// Returns how many requests the queues had no room for so far.
    pub fn turned_away(&self) -> TurnedAway {
        let [requests, tokens] = &*self.turned_away;
        TurnedAway {
            requests: requests.load(Ordering::Relaxed),
            tokens: tokens.load(Ordering::Relaxed),
        }
    }

    /// Shortens the time for a request that wants its answer sooner.
    pub fn shortened(&self, answer: Option<Duration>) -> Self {
        let answer = answer.map_or(self.answer, |wanted| wanted.min(self.answer));
        Self {
            answer,
            queue: self.queue.min(answer),
            ..self.clone()
        }
    }

    /// Takes room for the prompts. A prompt that is larger than all the room may wait alone.
    pub(super) fn wait_in_line(&self, owner: &Owner, tokens: usize) -> Result<Place, ApiError> {
        self.waiting.take(owner, tokens).map_err(|_| {
            self.turned_away[1].fetch_add(1, Ordering::Relaxed);
            ApiError::queue_of_tokens_full(self.waiting.limit())
        })
    }
}
