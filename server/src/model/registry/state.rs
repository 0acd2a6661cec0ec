//! The state of one model: whether it is in memory, and who uses it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch::Receiver;

use super::bounds::Bounds;
use crate::model::served::ServedModel;
use crate::model::text::StartError;
use crate::wire::error::ApiError;

/// The reasons why a model is not loaded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// As many models as are allowed are in memory, and those were in use all the time.
    #[error("{0} may be in memory at a time, and those that are there are in use")]
    NoRoom(Bounds),
    /// Its weights alone take more memory than all models may.
    #[error(
        "its weights take {bytes} bytes, and --models-memory allows {memory} bytes for all models together"
    )]
    TooLarge {
        /// The bytes of its weights.
        bytes: u64,
        /// The bytes that all models may take.
        memory: u64,
    },
    /// Its files cannot be used, or its engine cannot start.
    #[error("{0}")]
    Failed(Arc<StartError>),
    /// The load panicked.
    #[error("the load panicked; the log has the reason")]
    Panicked,
    /// Its engine has ended by itself, so that the model has to be loaded again.
    #[error("its engine has ended, after passes that failed one after another; the log has the reason")]
    Died,
    /// It was started elsewhere, so that it cannot be loaded again.
    #[error("it cannot be loaded again")]
    Once,
    /// The service ends.
    #[error("the service is ending")]
    Stopped,
}

impl LoadError {
    /// Returns the error for a client who asked for the model of this name.
    pub(super) fn told(&self, name: &str) -> ApiError {
        match self {
            Self::NoRoom(_) => ApiError::no_room_for_model(name, &self.to_string()),
            Self::Stopped => ApiError::shutting_down(),
            Self::TooLarge { .. } | Self::Failed(_) | Self::Panicked | Self::Died | Self::Once => {
                ApiError::model_not_loaded(name, &self.to_string())
            }
        }
    }
}

/// The outcome of a load, once there is one.
pub(super) type Outcome = Option<Result<Arc<ServedModel>, LoadError>>;

/// The state of a model in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is not in memory; a request for it loads it.
    Unloaded,
    /// It is being loaded, or waits for room.
    Loading,
    /// It is in memory.
    Loaded,
    /// It is to leave the memory, and still has requests to answer.
    Unloading,
    /// Its last load failed; a request for it tries again.
    Failed,
}

impl Status {
    /// Returns the word of the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unloaded => "unloaded",
            Self::Loading => "loading",
            Self::Loaded => "loaded",
            Self::Unloading => "unloading",
            Self::Failed => "failed",
        }
    }
}

/// What is known of a model since it was first loaded.
#[derive(Clone, Copy, Debug)]
pub struct Details {
    /// When it was last loaded, in seconds since 1970.
    pub created: u64,
    /// The maximum number of tokens of a prompt and its answer together.
    pub max_context: usize,
    /// The name of the format of its weights.
    pub weights: &'static str,
    /// The bytes that its weights take, with those of its draft model.
    pub weight_bytes: u64,
    /// The name of the format of calls of tools.
    pub tool_format: &'static str,
    /// `true` if requests may set `batch_invariant`.
    pub batch_invariant: bool,
}

impl From<&ServedModel> for Details {
    fn from(served: &ServedModel) -> Self {
        Self {
            created: served.created(),
            max_context: served.engine().max_context(),
            weights: served.weights().name(),
            weight_bytes: served.weight_bytes(),
            tool_format: served.tool_format().name(),
            batch_invariant: served.engine().variance().is_none(),
        }
    }
}

/// The state of a model.
pub(super) enum State {
    /// Not in memory, and why the last load failed.
    Unloaded(Option<LoadError>),
    /// Being loaded, by one thread for all who wait.
    Loading {
        /// The bytes of its weights, from when it counts against the bounds.
        room: Option<u64>,
        outcome: Receiver<Outcome>,
    },
    /// In memory.
    Loaded(Loaded),
    /// Leaving the memory, with so many bytes of weights; nobody uses it.
    Retiring(u64),
}

impl Default for State {
    fn default() -> Self {
        Self::Unloaded(None)
    }
}

impl State {
    /// Returns the bytes of weights that count against the bounds; `None` if the model does not count.
    pub(super) fn room(&self) -> Option<u64> {
        match self {
            Self::Unloaded(_) => None,
            Self::Loading { room, .. } => *room,
            Self::Loaded(loaded) => Some(loaded.bytes),
            Self::Retiring(bytes) => Some(*bytes),
        }
    }

    /// Returns `true` if the model is on its way into or out of the memory.
    pub(super) fn changes(&self) -> bool {
        matches!(self, Self::Loading { .. } | Self::Retiring(_))
    }
}

/// A model in memory.
pub(super) struct Loaded {
    pub(super) served: Arc<ServedModel>,
    /// The bytes of weights that count against the bounds.
    pub(super) bytes: u64,
    /// When it was last taken up, or seen in use.
    pub(super) used: Instant,
    /// `true` if an operator has unloaded it while it was in use.
    pub(super) leaves: bool,
}

impl Loaded {
    /// Returns `true` if nobody but the registry holds the model. Under the lock of the registry it stays
    /// so.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.served) == 1
    }
}

/// A model's state and its details.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) details: Option<Details>,
}

impl Slot {
    /// Returns the slot of a model that is in memory, whose weights count as so many bytes.
    pub(super) fn loaded(served: Arc<ServedModel>, bytes: u64) -> Self {
        Self {
            details: Some(Details::from(&*served)),
            state: State::Loaded(Loaded {
                served,
                bytes,
                used: Instant::now(),
                leaves: false,
            }),
        }
    }

    /// Takes up the model if it is loaded, and its engine runs.
    pub(super) fn take_up(&mut self, now: Instant) -> Option<Arc<ServedModel>> {
        let State::Loaded(loaded) = &mut self.state else {
            return None;
        };
        if !loaded.served.engine().is_alive() {
            return None;
        }
        loaded.used = now;
        loaded.leaves = false;
        Some(loaded.served.clone())
    }

    pub(super) fn is_in_use(&self) -> bool {
        matches!(&self.state, State::Loaded(loaded) if !loaded.is_idle())
    }

    pub(super) fn told(&self) -> (Status, Option<String>, Option<Details>) {
        let (status, error) = match &self.state {
            State::Unloaded(None) => (Status::Unloaded, None),
            State::Unloaded(Some(error)) => (Status::Failed, Some(error.to_string())),
            State::Loading { .. } => (Status::Loading, None),
            State::Loaded(loaded) if loaded.leaves => (Status::Unloading, None),
            State::Loaded(_) => (Status::Loaded, None),
            State::Retiring(_) => (Status::Unloading, None),
        };
        (status, error, self.details)
    }

    /// Takes the model out of an idle slot; a model in use leaves later.
    pub(super) fn leave(&mut self) -> Option<Loaded> {
        if let State::Loaded(loaded) = &mut self.state {
            loaded.leaves = true;
        }
        self.end_if(Loaded::is_idle)
    }

    /// Takes the model out if it is idle and leaves, or has been idle for this long.
    pub(super) fn end_if_due(&mut self, now: Instant, idle: Option<Duration>) -> Option<Loaded> {
        if let State::Loaded(loaded) = &mut self.state
            && !loaded.is_idle()
        {
            loaded.used = loaded.used.max(now);
        }
        let is_over =
            |loaded: &Loaded| idle.is_some_and(|idle| now.saturating_duration_since(loaded.used) >= idle);
        self.end_if(|loaded| loaded.is_idle() && (loaded.leaves || is_over(loaded)))
    }

    /// Returns the time since which an idle model was not used.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        match &self.state {
            State::Loaded(loaded) if loaded.is_idle() => Some(loaded.used),
            _ => None,
        }
    }

    /// Takes a model out whose engine has ended: the slot is empty, although requests may hold the model
    /// until they have failed.
    pub(super) fn bury(&mut self) -> Option<Loaded> {
        let is_dead = |loaded: &Loaded| !loaded.served.engine().is_alive();
        let dead = self.end_if(is_dead)?;
        self.state = State::Unloaded(Some(LoadError::Died));
        Some(dead)
    }

    /// Takes the model out of the slot, which retires it, if it satisfies `is`.
    pub(super) fn end_if(&mut self, is: impl Fn(&Loaded) -> bool) -> Option<Loaded> {
        match std::mem::take(&mut self.state) {
            State::Loaded(loaded) if is(&loaded) => {
                self.state = State::Retiring(loaded.bytes);
                Some(loaded)
            }
            other => {
                self.state = other;
                None
            }
        }
    }
}
