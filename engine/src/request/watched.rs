//! Monitors of a request: programs of the caller that are asked about tokens, guarded.
//!
//! ```text
//!   Watched (a name, a monitor) ─┐
//!   Watched                     ─┼─► Product of guarded ones ─► asked on a thread of the pool, never on the decode thread
//!   Watched                     ─┘     a panic becomes a failure; whose turn it is can be read from outside
//! ```
//!
//! A sequence whose monitors are late sits passes out. A sequence whose monitors panic or exceed their time
//! fails alone.
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
    /// What errors call it.
    pub name: Arc<str>,
    /// It is asked on threads of the engine, of which it takes one as long as it takes. It may panic.
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

/// Which of the monitors of a request is asked at the moment.
pub(crate) type Turn = Arc<AtomicUsize>;

/// All monitors of a request together.
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

/// A monitor whose panics are failures.
struct Guarded {
    monitor: Arc<dyn Monitor>,
    turn: (usize, Turn),
}

/// `None` where the monitor panicked at the start.
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
            // What a panic has left is asked nothing more.
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
