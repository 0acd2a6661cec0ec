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

use lexiform_law::monitor::{Coverage, Failure, Monitor, MonitorState, Product};
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
}
