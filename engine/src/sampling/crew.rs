//! Threads for the duration of a pass, to draw from wide rows of many sequences at once.
//!
//! Drawing from a row of 128,000 logits takes about a millisecond. One thread would delay a batch of 64 for
//! longer than a GPU computes it. Threads are started for each pass: they may then borrow what the pass owns,
//! and starting one costs a fiftieth of a row.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::scope;

/// The number of logits for which starting a thread pays: some rows of a small vocabulary, half a row of a
/// large one.
const WORTH: usize = 1 << 16;

/// Returns how many of `most` threads should share work on this many numbers.
pub(crate) fn threads(most: usize, numbers: usize) -> usize {
    most.min(numbers / WORTH).max(1)
}

/// Runs every task; the results are in the order of the tasks. Free threads take the tasks in order. A panic
/// in one of them is resumed here.
pub(crate) fn each<T: Send, R: Send>(tasks: Vec<T>, threads: usize, run: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = threads.min(tasks.len());
    if threads <= 1 {
        return tasks.into_iter().map(run).collect();
    }
    let queue = Mutex::new(tasks.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut results = Vec::new();
        while let Some((number, task)) = next() {
            results.push((number, run(task)));
        }
        results
    };
    let mut results = scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut results = work();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn results_are_in_the_order_of_the_tasks() {
        for threads in [0, 1, 2, 7, 200] {
            let tasks: Vec<usize> = (0..100).collect();
            let expected: Vec<usize> = tasks.iter().map(|task| task * task).collect();
            assert_eq!(each(tasks, threads, |task| task * task), expected);
        }
        assert!(each(Vec::<u8>::new(), 4, |task| task).is_empty());
    }

    #[test]
    fn a_panic_keeps_its_message() {
        let run = || {
            each((0..40).collect(), 4, |task: u32| {
                assert!(task != 33, "task {task}")
            })
        };
        let panic = catch_unwind(run).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), "task 33");
    }

    #[test]
    fn little_work_is_done_at_once() {
        assert_eq!(threads(16, 32 * 2048 - 1), 1);
        assert_eq!(threads(16, 64 * 128_256), 16);
        assert_eq!(threads(0, 1 << 30), 1);
    }
}
