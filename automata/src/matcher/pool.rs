//! A bounded number of threads that compute the masks of a batch, separate from the host's own rayon pool.
//!
//! ```text
//!   rows ─► those that take little work: on the calling thread     most batches end here and wake no thread
//!        └► the others: on the threads of the pool                 started when they are first needed
//! ```
//!
//! A host that embeds the library may fork, and threads do not survive a fork. So a pool checks which process
//! it is in, and starts new threads in a new process. The library has no access to process ids: the caller
//! passes a function for that.

use std::fmt;
use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::batch_row::Job;
use crate::error::Exhausted;
use crate::work;

/// A bounded number of threads for the masks of batches and trees. The threads start when they are first
/// needed.
pub struct Pool {
    threads: usize,
    process: fn() -> u32,
    crew: Mutex<Option<Crew>>,
}

/// A pool of threads, and the process that it runs in.
struct Crew {
    process: u32,
    threads: Arc<rayon::ThreadPool>,
}

/// The rounds of work that the calling thread spends on each row before it leaves the row to other threads:
/// some microseconds, which is about the time it takes to wake a thread.
const ROUNDS: usize = 512;

impl Pool {
    /// Creates a pool of at most `threads` threads; with zero or one, the calling thread does everything.
    /// `process` returns a number that differs between a process and its forks, such as [`std::process::id`].
    pub fn new(threads: usize, process: fn() -> u32) -> Pool {
        Pool {
            threads,
            process,
            crew: Mutex::new(None),
        }
    }

    /// Returns the maximum number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs all jobs, and returns the numbers of those whose mask would cost more than its limits allow, in
    /// ascending order.
    pub(super) fn finish(&self, jobs: Vec<Job<'_>>) -> Vec<(usize, Exhausted)> {
        let mut refused = Vec::new();
        let mut late = Vec::new();
        for mut job in jobs {
            match work::briefly(ROUNDS, || job.fill()) {
                Some(filled) => refused.extend(filled.err().map(|exhausted| (job.number, exhausted))),
                None => late.push(job),
            }
        }
        let cancel = work::cancel();
        let fill = |mut job: Job<'_>| {
            let filled = match &cancel {
                Some(cancel) => work::unless_cancelled(cancel, || job.fill())?,
                None => job.fill(),
            };
            Some((job.number, filled.err()?))
        };
        let crew = (late.len() > 1).then(|| self.crew()).flatten();
        match crew {
            None => refused.extend(late.into_iter().filter_map(fill)),
            Some(crew) => {
                let late = late.into_par_iter().with_max_len(1);
                refused.extend(crew.install(|| late.filter_map(fill).collect::<Vec<_>>()));
            }
        }
        work::end_if_cancelled();
        refused.sort_unstable_by_key(|&(number, _)| number);
        refused
    }

    /// Returns the threads of this process; `None` if there are to be none, if the system cannot start any,
    /// or while another thread starts them.
    fn crew(&self) -> Option<Arc<rayon::ThreadPool>> {
        if self.threads < 2 {
            return None;
        }
        let process = (self.process)();
        let mut crew = self.crew.try_lock().ok()?;
        match crew.take() {
            Some(known) if known.process == process => *crew = Some(known),
            // The threads of the forked-from process are gone, and dropping the pool would wait for them.
            Some(gone) => std::mem::forget(gone),
            None => {}
        }
        if crew.is_none() {
            let threads = rayon::ThreadPoolBuilder::new().num_threads(self.threads);
            let threads = threads.thread_name(|number| format!("lexiform-{number}"));
            let threads = Arc::new(threads.build().ok()?);
            *crew = Some(Crew { process, threads });
        }
        crew.as_ref().map(|crew| crew.threads.clone())
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads).finish()
    }
}
