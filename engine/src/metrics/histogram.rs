//! Histograms: how many durations or numbers were at most as large as each bound.
//!
//! The decode thread and the mask threads write them, and any thread may read them; no thread waits for
//! another. A reader may see a count a moment before the sum it belongs to.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counts values in buckets.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    buckets: Box<[AtomicU64]>,
    count: AtomicU64,
    /// The bits of an `f64`, the sum of the values.
    sum: AtomicU64,
    /// The bits of the greatest value. Values that are not negative are ordered like their bits.
    longest: AtomicU64,
}

impl Histogram {
    /// Creates a histogram with buckets up to these bounds, in ascending order.
    pub fn new(bounds: &'static [f64]) -> Self {
        Histogram {
            bounds,
            buckets: bounds.iter().map(|_| AtomicU64::new(0)).collect(),
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0.0f64.to_bits()),
            longest: AtomicU64::new(0.0f64.to_bits()),
        }
    }

    /// Counts a value.
    pub fn observe(&self, value: f64) {
        let bucket = self.bounds.partition_point(|&bound| bound < value);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.longest.fetch_max(value.max(0.0).to_bits(), Relaxed);
        let more = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // The closure always returns a value, so the update always succeeds.
        let _ = self.sum.fetch_update(Relaxed, Relaxed, more);
    }

    /// Returns the greatest value so far; zero if there is none, or if all are negative.
    pub fn longest(&self) -> f64 {
        f64::from_bits(self.longest.load(Relaxed))
    }

    /// Counts a duration, in seconds.
    pub fn observe_time(&self, time: Duration) {
        self.observe(time.as_secs_f64());
    }

    /// Returns each bound with the number of values that were at most as large.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        self.bounds
            .iter()
            .zip(&self.buckets)
            .map(move |(&bound, bucket)| {
                sum += bucket.load(Relaxed);
                (bound, sum)
            })
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Returns the sum of the values.
    pub fn sum(&self) -> f64 {
        f64::from_bits(self.sum.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_in_every_bucket_that_it_fits_into() {
        let histogram = Histogram::new(&[1.0, 2.0, 4.0]);
        for value in [0.5, 1.0, 1.5, 4.5] {
            histogram.observe(value);
        }
        histogram.observe_time(Duration::from_millis(2500));
        let buckets: Vec<(f64, u64)> = histogram.buckets().collect();
        assert_eq!(buckets, [(1.0, 2), (2.0, 3), (4.0, 4)]);
        assert_eq!((histogram.count(), histogram.sum()), (5, 10.0));
    }
}
