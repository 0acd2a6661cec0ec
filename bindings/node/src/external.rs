//! Memory outside of the heap of V8: a small object may hold megabytes, and only when the collector knows of
//! them does it run in time.

use std::sync::atomic::{AtomicI64, Ordering};

use napi::Env;
use napi_derive::napi;

/// The bytes that the collector was told of, of all objects together.
static TOLD: AtomicI64 = AtomicI64::new(0);

/// The memory of one object, as the collector was told.
#[derive(Default)]
pub(crate) struct External(i64);

impl External {
    /// Tells the collector that the object now has this many bytes.
    pub(crate) fn tell(&mut self, env: Env, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let change = bytes - self.0;
        // A process that is about to end may refuse, and then nothing depends on it.
        if change != 0 && env.adjust_external_memory(change).is_ok() {
            self.0 = bytes;
            TOLD.fetch_add(change, Ordering::Relaxed);
        }
    }
}

/// Returns the bytes that the collector was told of and that were not freed since.
#[napi(catch_unwind)]
pub(crate) fn external_memory() -> i64 {
    TOLD.load(Ordering::Relaxed)
}
