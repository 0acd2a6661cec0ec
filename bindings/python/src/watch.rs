//! Cancels work that may take long: after a deadline, or on an interrupt from the keyboard.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lexiform::limits::Cancel;
use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;

/// The interval at which the work lets Python run signal handlers, in milliseconds.
const EVERY_MS: u64 = 20;

/// Work that can be cancelled.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Watched>);

struct Watched {
    /// The name of the work.
    work: &'static str,
    began: Instant,
    deadline: Option<Duration>,
    /// The time at which handlers last ran, in milliseconds after the beginning.
    looked: AtomicU64,
    /// The reason why the work is cancelled.
    reason: Mutex<Option<PyErr>>,
}

impl Watch {
    /// Begins work of this name, which may take at most `deadline` seconds.
    pub(crate) fn new(work: &'static str, deadline: Option<f64>) -> Watch {
        let deadline = deadline.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        Watch(Arc::new(Watched {
            work,
            began: Instant::now(),
            deadline,
            looked: AtomicU64::new(0),
            reason: Mutex::new(None),
        }))
    }

    /// Returns the cancellation check for the work. The thread that does the work must not be attached to the
    /// interpreter.
    pub(crate) fn cancel(&self) -> Cancel {
        let watch = self.clone();
        Cancel::when(move || watch.look())
    }

    fn look(&self) -> bool {
        let elapsed = self.0.began.elapsed();
        if let Some(deadline) = self.0.deadline.filter(|&deadline| elapsed >= deadline) {
            let message = format!(
                "the {} took longer than {} s",
                self.0.work,
                deadline.as_secs_f64()
            );
            self.stop(PyTimeoutError::new_err(message));
            return true;
        }
        let now = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        if now < self.0.looked.load(Ordering::Relaxed) + EVERY_MS {
            return false;
        }
        self.0.looked.store(now, Ordering::Relaxed);
        match Python::try_attach(|py| py.check_signals()) {
            Some(Err(error)) => {
                self.stop(error);
                true
            }
            _ => false,
        }
    }

    fn stop(&self, error: PyErr) {
        *self.0.reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Returns the reason why the work was cancelled, if it was.
    pub(crate) fn reason(&self) -> Option<PyErr> {
        self.0
            .reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
