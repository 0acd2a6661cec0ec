//! Processor time, and what may take how much of it.
//!
//! A machine that is shared stops a process at any moment, so wall time finds what is not there. Processor
//! time of the whole process also counts what a reader leaves to other threads.

use std::sync::OnceLock;
use std::time::Duration;

/// A compile, or any other reading of an input.
pub const COMPILE: Duration = Duration::from_secs(2);
/// A mask, and a step to the next state.
pub const MASK: Duration = Duration::from_millis(50);
/// All that is asked of one grammar. A grammar whose thousands of masks are each just quick enough is no
/// finding, and would keep a run from its other inputs.
pub const WALK: Duration = Duration::from_secs(2);

/// Processor time from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Duration);

impl Stopwatch {
    /// From now on.
    pub fn start() -> Stopwatch {
        Stopwatch(now())
    }

    /// Whether this much has gone by.
    pub fn is_over(self, allowed: Duration) -> bool {
        now().saturating_sub(self.0) > allowed
    }
}

/// Times what is done, and ends the run with a finding where it took longer than it may.
pub fn within<T>(allowed: Duration, what: &str, work: impl FnOnce() -> T) -> T {
    let before = now();
    let result = work();
    let taken = now().saturating_sub(before);
    assert!(
        taken <= allowed * slack(),
        "finding: time: {what} took {} ms of processor time, {} are allowed",
        taken.as_millis(),
        allowed.as_millis()
    );
    result
}

/// How many times slower this program is than the one that is served: coverage and assertions cost.
/// `FUZZ_SLACK` says so.
fn slack() -> u32 {
    static SLACK: OnceLock<u32> = OnceLock::new();
    *SLACK.get_or_init(|| {
        let told = std::env::var("FUZZ_SLACK").ok();
        told.and_then(|text| text.parse().ok()).unwrap_or(4)
    })
}

fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}
