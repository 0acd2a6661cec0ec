//! The processor time of this thread.
//!
//! Wall time on a shared machine measures the neighbours; what is compared between engines is the work that one
//! thread did.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment on this thread's clock; only the distance between two of them means something.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTime(Duration);

impl ThreadTime {
    /// This moment.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanoseconds))
    }

    /// The work of this thread since then, in microseconds.
    pub fn microseconds(self) -> f64 {
        Self::now().0.saturating_sub(self.0).as_nanos() as f64 / 1000.0
    }
}

/// Runs `work` and says how many microseconds of this thread it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = ThreadTime::now();
    let result = work();
    (result, start.microseconds())
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
