//! Measures how long a thread worked.
//!
//! Wall time on a shared machine includes the work of others; engines are compared by the work of one thread.
//! The clock of the thread's processor time measures that, but reading it twice costs more than half a
//! microsecond, which is longer than most masks take. Neither clock shows less than the work, so the smaller
//! of the two is closer to it: the wall clock if nothing interrupted the thread, the thread's clock if
//! something did.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Returns the processor time of this thread so far.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

/// Runs `work` and returns an upper bound on the microseconds of this thread that it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let thread = thread_time();
    let wall = Instant::now();
    let result = work();
    let wall = wall.elapsed();
    let thread = thread_time().saturating_sub(thread);
    (result, wall.min(thread).as_nanos() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_and_waiting_does_not_count() {
        let (sum, work) = timed(|| (0..200_000_u64).fold(0, |sum, it| std::hint::black_box(sum ^ it)));
        assert!(sum < 1 << 18 && work > 0.0, "{work}");
        let start = std::time::Instant::now();
        let ((), waiting) = timed(|| std::thread::sleep(Duration::from_millis(30)));
        assert!(
            waiting < start.elapsed().as_micros() as f64,
            "sleeping is no work: {waiting}"
        );
    }
}
