//! Threads that find the masks of a batch: a bounded number, and never those of the host's own rayon pool.
//!
//! ```text
//!   rows ─► those that take little work: on the calling thread     most batches end here, and wake nobody
//!        └► the others: on the threads of the pool                 started when they are first needed
//! ```
//!
//! A host that embeds the library may fork, and threads do not survive that. So a pool asks which process it
//! is in, and starts new threads in a new one. The library knows no processes itself: the caller passes a
//! function for it.

use std::fmt;
use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::batch_row::Job;
use crate::error::Exhausted;
use crate::work;

/// A bounded number of threads for the masks of batches and trees; they start when they are first needed.
pub struct Pool {
    threads: usize,
    process: fn() -> u32,
    crew: Mutex<Option<Crew>>,
}

/// Threads, and the process that they run in.
struct Crew {
    process: u32,
    threads: Arc<rayon::ThreadPool>,
}

/// The rounds of work that the calling thread gives to each row before it leaves the row to others: some
/// microseconds, which is about what it takes to wake a thread.
const ROUNDS: usize = 512;

impl Pool {
    /// At most this many threads; with none or one, the calling thread does everything. `process` returns a
    /// number that differs between a process and its forks, such as [`std::process::id`].
    pub fn new(threads: usize, process: fn() -> u32) -> Pool {
        Pool {
            threads,
            process,
            crew: Mutex::new(None),
        }
    }

    /// The most threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Does all jobs; the numbers of those whose mask would cost more than its limits allow, in ascending
    /// order.
    pub(super) fn finish(&self, jobs: Vec<Job<'_>>) -> Vec<(usize, Exhausted)> {
        let mut refused = Vec::new();
        let mut late = Vec::new();
        for mut job in jobs {
            match work::briefly(ROUNDS, || job.fill()) {
                Some(filled) => refused.extend(filled.err().map(|exhausted| (job.number, exhausted))),
                None => late.push(job),
            }
        }
        let fill = |mut job: Job<'_>| Some((job.number, job.fill().err()?));
        let crew = (late.len() > 1).then(|| self.crew()).flatten();
        match crew {
            None => refused.extend(late.into_iter().filter_map(fill)),
            Some(crew) => {
                let late = late.into_par_iter().with_max_len(1);
                refused.extend(crew.install(|| late.filter_map(fill).collect::<Vec<_>>()));
            }
        }
        refused.sort_unstable_by_key(|&(number, _)| number);
        refused
    }

    /// The threads of this process; `None` where there are to be none, where the system gives none, and while
    /// another thread starts them.
    fn crew(&self) -> Option<Arc<rayon::ThreadPool>> {
        if self.threads < 2 {
            return None;
        }
        let process = (self.process)();
        let mut crew = self.crew.try_lock().ok()?;
        match crew.take() {
            Some(known) if known.process == process => *crew = Some(known),
            // Its threads are gone, and to end it would be to wait for them.
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
