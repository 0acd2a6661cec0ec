//! A limit per minute: a token bucket.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A token bucket that refills evenly, up to the amount per minute.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) per_minute: u32,
    state: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub(super) fn new(per_minute: u32) -> Self {
        Self {
            per_minute,
            state: Mutex::new((f64::from(per_minute), Instant::now())),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut f64) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = *state;
        let most = f64::from(self.per_minute);
        let mut now = (left + since.elapsed().as_secs_f64() * most / 60.0).min(most);
        let result = change(&mut now);
        *state = (now, Instant::now());
        result
    }

    fn left(&self) -> f64 {
        self.with(|left| *left)
    }

    /// Returns the amount per minute, and the amount left.
    pub(super) fn told(&self) -> (u32, u32) {
        (self.per_minute, self.left().max(0.0) as u32)
    }

    /// Takes this amount, or returns the seconds until it is available.
    pub(super) fn take(&self, amount: f64) -> Result<(), f64> {
        self.with(|left| {
            if *left >= amount {
                *left -= amount;
                Ok(())
            } else {
                Err(self.seconds(amount - *left))
            }
        })
    }

    /// Takes this amount even if it is not available: it was already used and cannot be refused.
    pub(super) fn spend(&self, amount: f64) {
        self.with(|left| *left -= amount);
    }

    pub(super) fn empty_for(&self) -> Option<f64> {
        let left = self.left();
        (left <= 0.0).then(|| self.seconds(1.0 - left))
    }

    fn seconds(&self, missing: f64) -> f64 {
        missing * 60.0 / f64::from(self.per_minute.max(1))
    }
}
