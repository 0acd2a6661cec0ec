//! How long things take, as far as only the engine can measure it.

use crate::metrics::histogram::Histogram;
use std::time::{Duration, Instant};

/// The bounds for masks. A cached mask takes a fraction of a microsecond, the worst ones take milliseconds:
/// these bounds show the median as well as one in ten thousand.
static MASK: [f64; 20] = [
    2.5e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2,
    0.1, 0.25, 1.0,
];
static GAP: [f64; 16] = [
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 5.0,
];
static TOKENS: [f64; 14] = [
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0,
];

/// The measurements that the engine always takes.
#[derive(Debug)]
pub struct Meters {
    /// Seconds for one mask, on any thread.
    pub masks: Histogram,
    /// Seconds that a pass waited for its masks after the model was done. A pass after whose draws the next
    /// one begins is not counted, because that hides the wait.
    pub mask_waits: Histogram,
    /// Seconds of one pass of the model, until its logits are in memory. Where the next pass begins directly
    /// after the draws, this is the time from the end of the previous draws to the end of its own.
    pub passes: Histogram,
    /// Seconds for drawing from the logits of one pass, for all sequences together.
    pub draws: Histogram,
    /// The number of tokens fed in one pass.
    pub pass_tokens: Histogram,
    /// Seconds between two passes that gave tokens of the same answer.
    pub gaps: Histogram,
}

impl Default for Meters {
    fn default() -> Self {
        Meters {
            masks: Histogram::new(&MASK),
            mask_waits: Histogram::new(&MASK),
            passes: Histogram::new(&GAP),
            draws: Histogram::new(&GAP),
            pass_tokens: Histogram::new(&TOKENS),
            gaps: Histogram::new(&GAP),
        }
    }
}

/// The duration of an answer, by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From its submission until it ran for the first time.
    pub queued: Duration,
    /// From then to its first token.
    pub prefill: Duration,
    /// From its first token to its last.
    pub decode: Duration,
}

/// The points in time of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    submitted: Instant,
    admitted: Option<Instant>,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Moments {
    pub(crate) fn now() -> Self {
        Moments {
            submitted: Instant::now(),
            admitted: None,
            first: None,
            last: None,
        }
    }

    /// Returns the time from the submission to `moment`.
    pub(crate) fn until(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.submitted)
    }

    /// Returns `true` if no more than a quarter of the time from the submission to `deadline` is left: the
    /// part that is reserved for a text in place of attempts that all failed.
    pub(crate) fn is_nearly(&self, deadline: Instant, now: Instant) -> bool {
        deadline.saturating_duration_since(now) <= self.until(deadline) / 4
    }

    /// Returns the moments of a request that was submitted earlier.
    #[cfg(test)]
    pub(crate) fn submitted_before(time: Duration) -> Self {
        let now = Moments::now();
        Moments {
            submitted: now.submitted - time,
            ..now
        }
    }

    /// Records that the answer runs now. Only the first call counts: a preempted answer has run before.
    pub(crate) fn admitted(&mut self) {
        self.admitted.get_or_insert_with(Instant::now);
    }

    /// Records that a pass gave tokens, and returns the time since the previous one.
    pub(crate) fn drawn(&mut self) -> Option<Duration> {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last.replace(now).map(|last| now - last)
    }

    pub(crate) fn times(&self) -> Times {
        let now = Instant::now();
        let admitted = self.admitted.unwrap_or(now);
        let first = self.first.unwrap_or(now);
        Times {
            queued: admitted - self.submitted,
            prefill: self.admitted.map_or(Duration::ZERO, |admitted| first - admitted),
            decode: self.last.map_or(Duration::ZERO, |last| last - first),
        }
    }
}
