//! Cancels work that may take long: after a deadline, or when its caller aborts it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lexiform::limits::Cancel;
use napi::{Error, Result};
use napi_derive::napi;

use crate::error::{cancelled, internal_error};

/// A switch that aborts work on another thread.
#[napi]
pub struct Abort(Arc<AtomicBool>);

#[napi]
impl Abort {
    /// Creates a switch that is off.
    #[napi(constructor, catch_unwind)]
    pub fn new() -> Abort {
        Abort(Arc::default())
    }

    /// Aborts the work that has this switch.
    #[napi(catch_unwind)]
    pub fn abort(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Work that can be cancelled.
#[derive(Clone)]
pub(crate) struct Watch {
    /// The name of the work.
    work: &'static str,
    timeout: Option<Duration>,
    is_late: Arc<AtomicBool>,
    is_aborted: Arc<AtomicBool>,
}

impl Watch {
    /// Describes work of this name, which may take this long once it has begun.
    pub(crate) fn new(work: &'static str, timeout: Option<Duration>, abort: Option<&Abort>) -> Watch {
        Watch {
            work,
            timeout,
            is_late: Arc::default(),
            is_aborted: abort.map(|abort| abort.0.clone()).unwrap_or_default(),
        }
    }

    /// Begins the work, and returns the check that cancels it.
    fn cancel(&self) -> Cancel {
        let (watch, began) = (self.clone(), Instant::now());
        Cancel::when(move || {
            let is_late = watch.timeout.is_some_and(|timeout| began.elapsed() >= timeout);
            watch.is_late.fetch_or(is_late, Ordering::Relaxed);
            is_late || watch.is_aborted.load(Ordering::Relaxed)
        })
    }

    /// Does the work.
    ///
    /// # Errors
    /// The reason why it was cancelled, its own error, or that of a panic.
    pub(crate) fn run<T>(&self, work: impl FnOnce(Cancel) -> Result<T>) -> Result<T> {
        // What the work shares with others is protected by locks that handle poisoning.
        let done = catch_unwind(AssertUnwindSafe(|| work(self.cancel())));
        let done = done.unwrap_or_else(|_| Err(internal_error()));
        match self.reason() {
            Some(reason) => Err(reason),
            None => done,
        }
    }

    fn reason(&self) -> Option<Error> {
        let Watch { work, timeout, .. } = self;
        if self.is_aborted.load(Ordering::Relaxed) {
            return Some(cancelled(format!("the {work} was aborted")));
        }
        let timeout = timeout.filter(|_| self.is_late.load(Ordering::Relaxed))?;
        Some(cancelled(format!(
            "the {work} took longer than {} ms",
            timeout.as_secs_f64() * 1000.0
        )))
    }
}
