//! Compares two threads on one grammar with one thread.
//!
//! Both walk the same instances on a grammar that is already compiled and cached. Processor time does not
//! include waiting for a lock, so this is the only measurement in wall-clock time. For shared machines, it is
//! repeated in slices of milliseconds, and the fastest slice of each kind counts: the one in which the
//! machine was ours.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::cases::Case;
use crate::engine::Compiled;

/// The intended duration of a slice.
const SLICE: Duration = Duration::from_micros(1500);
/// The number of slices of each kind.
const SLICES: usize = 60;

/// The times of the fastest slices, summed over schemas.
#[derive(Default)]
pub struct Sums {
    one: f64,
    two: f64,
    /// The number of measured schemas.
    pub schemas: usize,
}

impl Sums {
    /// Returns the throughput of two threads, relative to one thread.
    pub fn throughput(&self) -> f64 {
        2.0 * self.one / self.two
    }

    /// Measures one schema on one and on two threads.
    pub fn add(&mut self, compiled: &dyn Compiled, case: &Case) {
        let tokens: Vec<&[u32]> = case
            .instances
            .iter()
            .filter(|it| it.valid)
            .map(|it| &*it.tokens)
            .collect();
        let once = slice(compiled, &tokens, 1, 1);
        let rounds = (SLICE.as_secs_f64() / once.as_secs_f64()).clamp(1.0, 100_000.0) as usize;
        let mut best = [f64::INFINITY; 2];
        for _ in 0..SLICES {
            for (threads, best) in [1, 2].into_iter().zip(&mut best) {
                *best = best.min(slice(compiled, &tokens, threads, rounds).as_secs_f64());
            }
        }
        self.one += best[0];
        self.two += best[1];
        self.schemas += 1;
    }
}

/// Returns the time from the first thread's start to the last one's end.
fn slice(compiled: &dyn Compiled, tokens: &[&[u32]], threads: usize, rounds: usize) -> Duration {
    let waiting = AtomicUsize::new(threads);
    let work = || {
        // All threads start at once from a spin loop: waking a sleeping thread would take longer than the
        // work.
        waiting.fetch_sub(1, Ordering::AcqRel);
        while waiting.load(Ordering::Acquire) > 0 {
            spin_loop();
        }
        let start = Instant::now();
        for _ in 0..rounds {
            tokens.iter().for_each(|tokens| walk(compiled, tokens));
        }
        (start, Instant::now())
    };
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut spans = vec![work()];
        spans.extend(others.into_iter().filter_map(|it| it.join().ok()));
        spans
    });
    let start = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    start.zip(end).map_or(Duration::MAX, |(start, end)| end - start)
}

fn walk(compiled: &dyn Compiled, tokens: &[u32]) {
    let mut sequence = compiled.start();
    let mut going = sequence.mask();
    for &token in tokens {
        going = going && sequence.step(token) && sequence.mask();
    }
    black_box((going, sequence.words().len()));
}
