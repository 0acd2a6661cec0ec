//! The monitors of a request: guarded programs of the caller that are queried about tokens.
//!
//! ```text
//!   Watched (a name, a monitor) ─┐
//!   Watched                     ─┼─► Product of guarded ones ─► asked on a thread of the pool, never on the decode thread
//!   Watched                     ─┘     a panic becomes a failure; whose turn it is can be read from outside
//! ```
//!
//! A sequence whose monitors are late skips passes. If monitors panic or exceed their time, only their own
//! sequence fails.
//!
//! Tests: `engine/tests/engine/monitors.rs`.

use crate::error::{EngineError, MonitorProblem};
use lexiform_law::monitor::{Coverage, Failure, Monitor, MonitorState, Product, Score};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A monitor of a request.
#[derive(Clone)]
pub struct Watched {
    /// The name of the monitor in errors.
    pub name: Arc<str>,
    /// The monitor. It is queried on threads of the engine, and occupies one for as long as it runs. It may
    /// panic.
    pub monitor: Arc<dyn Monitor>,
    /// `true` if it asks another program, and mostly waits. It is then queried on a thread of its own, which
    /// no other sequence needs, and its failures are [`MonitorProblem::Host`].
    pub is_remote: bool,
}

impl Watched {
    /// Creates a monitor that computes its answers.
    pub fn new(name: impl Into<Arc<str>>, monitor: Arc<dyn Monitor>) -> Self {
        Watched {
            name: name.into(),
            monitor,
            is_remote: false,
        }
    }

    /// Returns the same monitor as one that asks another program.
    #[must_use]
    pub fn remote(self) -> Self {
        Watched {
            is_remote: true,
            ..self
        }
    }
}

/// An energy of the caller, by which texts weigh more or less than under the model: the texts of a population
/// have the law `∝ P(text) · exp(score(text))` in the limit of many particles.
#[derive(Clone)]
pub struct Tilt {
    /// The name of the score in errors.
    pub name: Arc<str>,
    /// The score of a text. It is queried like a monitor.
    pub score: Arc<dyn Score>,
    /// `true` to score unfinished texts as well, so that resampling prefers those with high scores. Each
    /// score replaces the one before; the law depends on the last one, of the whole text, alone.
    pub prefixes: bool,
    /// `true` if it asks another program, and mostly waits.
    pub is_remote: bool,
}

impl fmt::Debug for Tilt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Tilt");
        shown
            .field("name", &self.name)
            .field("prefixes", &self.prefixes)
            .finish_non_exhaustive()
    }
}

impl Tilt {
    /// Returns the score of a text; panics become failures.
    pub(crate) fn of(&self, text: &[u32], is_whole: bool) -> Result<f64, Failure> {
        let score = catch_unwind(AssertUnwindSafe(|| self.score.score(text, is_whole)));
        match score.unwrap_or_else(|_| Err(Failure("panicked".to_owned())))? {
            score if score.is_nan() || score == f64::INFINITY => {
                Err(Failure(format!("returned the score {score}")))
            }
            score => Ok(score),
        }
    }
}

/// Returns the error that reports a problem with a monitor, by its number; the number of the tilt comes after
/// those of all monitors.
pub(crate) fn monitor_error(
    watched: &[Watched],
    tilt: Option<&Tilt>,
    number: Option<usize>,
    problem: MonitorProblem,
) -> EngineError {
    let monitors = watched.iter().map(|it| (&it.name, it.is_remote));
    let mut all = monitors.chain(tilt.map(|it| (&it.name, it.is_remote)));
    let (name, is_remote) = match number.and_then(|number| all.nth(number)) {
        Some((name, is_remote)) => (name.to_string(), is_remote),
        None => (String::new(), false),
    };
    let problem = match (problem, is_remote) {
        (MonitorProblem::Failed(reason), true) => MonitorProblem::Host {
            reason,
            is_late: false,
        },
        (MonitorProblem::Slow { allowed }, true) => MonitorProblem::Host {
            reason: format!("it did not answer within {} s", allowed.as_secs_f64()),
            is_late: true,
        },
        (problem, _) => problem,
    };
    EngineError::Monitor {
        monitor: name,
        problem,
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Watched")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The number of the monitor of a request that is currently running.
pub(crate) type Turn = Arc<AtomicUsize>;

/// Returns the product of all monitors of a request.
pub(crate) fn product(watched: &[Watched], turn: &Turn) -> Product {
    let guarded = watched.iter().enumerate().map(|(number, watched)| {
        let guarded: Arc<dyn Monitor> = Arc::new(Guarded {
            monitor: watched.monitor.clone(),
            turn: (number, turn.clone()),
        });
        guarded
    });
    Product::new(guarded.collect())
}

/// A monitor whose panics are turned into failures.
struct Guarded {
    monitor: Arc<dyn Monitor>,
    turn: (usize, Turn),
}

/// The state of a guarded monitor; `state` is `None` if the monitor panicked.
struct GuardedState {
    state: Option<Box<dyn MonitorState>>,
    turn: (usize, Turn),
}

impl Monitor for Guarded {
    fn start(&self) -> Box<dyn MonitorState> {
        self.turn.1.store(self.turn.0, Ordering::Relaxed);
        Box::new(GuardedState {
            state: catch_unwind(AssertUnwindSafe(|| self.monitor.start())).ok(),
            turn: self.turn.clone(),
        })
    }
}

impl GuardedState {
    fn guard<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn MonitorState) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.turn.1.store(self.turn.0, Ordering::Relaxed);
        let Some(state) = &mut self.state else {
            return Err(Failure("panicked".to_owned()));
        };
        let answer = catch_unwind(AssertUnwindSafe(|| ask(&mut **state)));
        answer.unwrap_or_else(|panic| {
            // A state that panicked is not queried again.
            self.state = None;
            let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(Failure(match message {
                Some(message) => format!("panicked: {message}"),
                None => "panicked".to_owned(),
            }))
        })
    }
}

impl MonitorState for GuardedState {
    fn fork(&self) -> Box<dyn MonitorState> {
        let fork = |state: &dyn MonitorState| catch_unwind(AssertUnwindSafe(|| state.fork())).ok();
        Box::new(GuardedState {
            state: self.state.as_deref().and_then(fork),
            turn: self.turn.clone(),
        })
    }

    fn allows(&mut self, token: u32, left: Option<usize>) -> Result<bool, Failure> {
        self.guard(|state| state.allows(token, left))
    }

    fn advance(&mut self, token: u32) -> Result<(), Failure> {
        self.guard(|state| state.advance(token))
    }

    fn narrow(&mut self, words: &mut [u32], left: Option<usize>) -> Result<Coverage, Failure> {
        self.guard(|state| state.narrow(words, left))
    }

    /// After a panic nothing is known; the next query fails.
    fn narrow_known(&mut self, words: &mut [u32]) -> bool {
        self.guard(|state| Ok(state.narrow_known(words))).unwrap_or(false)
    }

    fn together(&self) -> usize {
        let together = |state: &dyn MonitorState| catch_unwind(AssertUnwindSafe(|| state.together())).ok();
        self.state.as_deref().and_then(together).unwrap_or(1)
    }

    fn prepare(&mut self, tokens: &[u32]) -> Result<(), Failure> {
        self.guard(|state| state.prepare(tokens))
    }
}
