//! Threads for the work of many owners, of unknown duration: short tasks never wait for long ones.
//!
//! ```text
//!   short tasks ─► by owner, in turn ─► worker ──► done
//!                                         │ a task holds it up: relieve()
//!                                         ▼
//!                                       the task ends at a low priority; a new worker takes the place
//!   long tasks ──► by owner, in turn ─► workers at a low priority
//! ```
//!
//! An owner one of whose tasks holds up a worker has its next tasks queued with the long ones until that task
//! has ended, so that no owner holds up two workers.
//!
//! A task cannot be interrupted, so a worker that one holds up is *relieved*: it ends together with its task,
//! at a low priority, and another thread serves the tasks that wait. A caller that knows that a task takes
//! long says so; the task then waits among the long tasks only.
//!
//! Within a queue the owners take turns, one task each: many tasks of one owner delay those of another by
//! one.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The owner of a task or a request; all anonymous work belongs to one owner, `None`.
pub type Owner = Option<Arc<str>>;

/// The work of a task. A panic ends only the task.
pub type Work = Box<dyn FnOnce() + Send>;

/// The amount by which the priority of long tasks is lowered, which is the maximum. A model computes on all
/// cores, and all of them wait for the slowest one; at a priority lower by 10, eight long tasks take half of
/// a core from it.
#[cfg(target_os = "linux")]
const LOWER: i32 = 19;

/// The expected duration of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Much less than other tasks can wait; also the choice where nothing is known.
    Short,
    /// More than other tasks should wait.
    Long,
}

/// A pool of threads. They end when the pool is dropped, each after its current task; tasks that wait are
/// dropped.
pub struct Pool(Arc<PoolShared>);

struct PoolShared {
    state: Mutex<State>,
    /// Signalled when a short task arrives.
    short: Condvar,
    /// Signalled when a long task arrives.
    long: Condvar,
    /// Signalled for the watching thread, if there is one, when a short task arrives.
    watch: Condvar,
    threads: usize,
    most_relieved: usize,
    /// The bytes of the stack of each thread; `None` for the default.
    stack: Option<usize>,
    /// The number of workers started so far, which numbers them.
    hired: AtomicU64,
}

#[derive(Default)]
struct State {
    short: OwnerTurns,
    long: OwnerTurns,
    /// The workers that are in a short task, by number: the start of the task, the thread and the owner.
    busy: HashMap<u64, Busy>,
    /// The owners of the tasks that relieved workers are still in, by the worker's number.
    relieved: HashMap<u64, Owner>,
    ended: bool,
}

/// A worker in a task.
struct Busy {
    since: Instant,
    thread: Thread,
    owner: Owner,
}

/// A queue of tasks in which the owners take turns.
#[derive(Default)]
struct OwnerTurns(VecDeque<(Owner, VecDeque<Work>)>);

impl OwnerTurns {
    fn push(&mut self, owner: Owner, work: Work) {
        match self.0.iter_mut().find(|(other, _)| *other == owner) {
            Some((_, works)) => works.push_back(work),
            None => self.0.push_back((owner, VecDeque::from([work]))),
        }
    }

    /// Takes the next task. Its owner's next turn comes after those of all others.
    fn pop(&mut self) -> Option<(Owner, Work)> {
        let (owner, mut works) = self.0.pop_front()?;
        let work = works.pop_front()?;
        if !works.is_empty() {
            self.0.push_back((owner.clone(), works));
        }
        Some((owner, work))
    }

    /// Takes all tasks of an owner.
    fn take(&mut self, owner: &Owner) -> VecDeque<Work> {
        let place = self.0.iter().position(|(other, _)| other == owner);
        let taken = place.and_then(|place| self.0.remove(place));
        taken.map_or_else(VecDeque::new, |(_, works)| works)
    }
}

impl Pool {
    /// Creates a pool of `threads` threads for short tasks and as many for long ones, with at most
    /// `most_relieved` workers that have been relieved and are still in their task. With no threads, a task
    /// runs on the thread that starts it.
    ///
    /// # Errors
    /// Fails if the operating system has no thread left.
    pub fn new(threads: usize, most_relieved: usize) -> std::io::Result<Self> {
        Self::with_stacks(threads, most_relieved, None)
    }

    fn with_stacks(threads: usize, most_relieved: usize, stack: Option<usize>) -> std::io::Result<Self> {
        let shared = Arc::new(PoolShared {
            state: Mutex::default(),
            short: Condvar::new(),
            long: Condvar::new(),
            watch: Condvar::new(),
            threads,
            most_relieved,
            stack,
            hired: AtomicU64::new(0),
        });
        // Threads that were started before one could not be end with this value.
        let pool = Pool(shared);
        for _ in 0..threads {
            pool.0.hire()?;
            let for_long = pool.0.clone();
            pool.0.spawn(move || for_long.work_long())?;
        }
        Ok(pool)
    }

    /// Starts a task.
    pub fn start(&self, owner: Owner, length: Length, work: Work) {
        if self.0.threads == 0 {
            return run(work);
        }
        let mut state = self.0.locked();
        let is_held_up = state.relieved.values().any(|other| *other == owner);
        match length {
            Length::Short if !is_held_up => {
                state.short.push(owner, work);
                self.0.short.notify_one();
                self.0.watch.notify_one();
            }
            Length::Short | Length::Long => {
                state.long.push(owner, work);
                self.0.long.notify_one();
            }
        }
    }

    /// Relieves the workers that a task has held up for longer than `after`, if other tasks wait for them.
    /// Call it while waiting for a short task.
    pub fn relieve(&self, after: Duration) {
        self.0.relieve(after);
    }

    /// Adds a thread that relieves workers which were held up for longer than `after`, so that no caller has
    /// to.
    ///
    /// # Errors
    /// Fails if the operating system has no thread left.
    pub fn watched(self, after: Duration) -> std::io::Result<Self> {
        let shared = self.0.clone();
        self.0.spawn(move || shared.watch(after))?;
        Ok(self)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.0.locked();
        state.ended = true;
        (state.short, state.long) = (OwnerTurns::default(), OwnerTurns::default());
        drop(state);
        for bell in [&self.0.short, &self.0.long, &self.0.watch] {
            bell.notify_all();
        }
    }
}

impl PoolShared {
    /// Locks the state, even after a panic. A panic cannot leave the state half written: tasks run without
    /// the lock.
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker for short tasks.
    fn hire(self: &Arc<Self>) -> std::io::Result<()> {
        let number = self.hired.fetch_add(1, Ordering::Relaxed);
        let shared = self.clone();
        self.spawn(move || shared.work_short(number))
    }

    fn spawn(&self, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = std::thread::Builder::new();
        let thread = match self.stack {
            Some(bytes) => thread.stack_size(bytes),
            None => thread,
        };
        thread.spawn(work).map(drop)
    }

    fn relieve(self: &Arc<Self>, after: Duration) {
        let mut state = self.locked();
        if state.short.0.is_empty() || state.relieved.len() >= self.most_relieved {
            return;
        }
        let is_held_up = |(_, busy): &(&u64, &Busy)| busy.since.elapsed() > after;
        let held_up = state.busy.iter().filter(is_held_up);
        let held_up: Vec<u64> = held_up.map(|(number, _)| *number).collect();
        for number in held_up {
            // If no more threads can be started, the waiting tasks keep waiting.
            if self.hire().is_err() {
                return;
            }
            let Some(Busy { thread, owner, .. }) = state.busy.remove(&number) else {
                return;
            };
            // The thread exists as long as the state is locked: before it ends, it checks whether it was
            // relieved.
            thread.lower_priority();
            for work in state.short.take(&owner) {
                state.long.push(owner.clone(), work);
                self.long.notify_one();
            }
            state.relieved.insert(number, owner);
        }
    }

    fn watch(self: Arc<Self>, after: Duration) {
        let mut state = self.locked();
        while !state.ended {
            if state.short.0.is_empty() {
                state = self.watch.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(state);
            std::thread::sleep(after);
            self.relieve(after);
            state = self.locked();
        }
    }

    fn work_short(&self, number: u64) {
        let mut state = self.locked();
        loop {
            let Some((owner, work)) = state.short.pop() else {
                if state.ended {
                    return;
                }
                state = self.short.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let busy = Busy {
                since: Instant::now(),
                thread: Thread::current(),
                owner,
            };
            state.busy.insert(number, busy);
            drop(state);
            run(work);
            state = self.locked();
            if state.busy.remove(&number).is_none() {
                // Another worker has replaced this one.
                state.relieved.remove(&number);
                return;
            }
        }
    }

    fn work_long(&self) {
        Thread::current().lower_priority();
        let mut state = self.locked();
        loop {
            let Some((_, work)) = state.long.pop() else {
                if state.ended {
                    return;
                }
                state = self.long.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            run(work);
            state = self.locked();
        }
    }
}

fn run(work: Work) {
    // A caller that waits for the task's answer learns that there is none.
    let _ = catch_unwind(AssertUnwindSafe(work));
}

/// Returns the processor time that this thread has used, where the operating system reports it. Unlike
/// elapsed time, it does not grow while other threads use the processor.
pub(crate) fn cpu_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
    #[cfg(not(target_os = "linux"))]
    {
        static BEGUN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        BEGUN.elapsed()
    }
}

/// A thread, by its id in the operating system.
#[derive(Clone, Copy)]
struct Thread(#[cfg(target_os = "linux")] rustix::process::Pid);

impl Thread {
    fn current() -> Self {
        Thread(
            #[cfg(target_os = "linux")]
            rustix::thread::gettid(),
        )
    }

    /// Lowers the thread's priority below that of all others. Does nothing where threads have no separate
    /// priorities.
    fn lower_priority(self) {
        #[cfg(target_os = "linux")]
        // The system may refuse; then the thread competes like any other.
        let _ = rustix::process::setpriority_process(Some(self.0), LOWER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    fn pool(threads: usize, most_relieved: usize) -> Pool {
        Pool::new(threads, most_relieved).expect("threads")
    }

    /// Guards against a service that panics where the system has no thread left: no address space has room
    /// for these stacks.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn threads_that_cannot_be_started_are_an_error() {
        assert!(Pool::with_stacks(2, 8, Some(1 << 60)).is_err());
        assert!(
            Pool::with_stacks(0, 8, Some(1 << 60)).is_ok_and(|pool| pool.watched(Duration::ZERO).is_err())
        );
    }

    /// Starts a task that reports when it begins, and ends on a message.
    fn held(pool: &Pool, owner: &str, length: Length) -> (Receiver<()>, Sender<()>) {
        let ((begun, begins), (end, ends)) = (channel(), channel());
        let work = move || {
            begun.send(()).expect("the test listens");
            ends.recv().ok();
        };
        pool.start(Some(owner.into()), length, Box::new(work));
        (begins, end)
    }

    fn note(pool: &Pool, owner: &str, length: Length, name: usize, to: &Sender<usize>) {
        let to = to.clone();
        let work = move || to.send(name).expect("the test listens");
        pool.start(Some(owner.into()), length, Box::new(work));
    }

    #[test]
    fn owners_take_turns() {
        let pool = pool(1, 8);
        for length in [Length::Short, Length::Long] {
            let (begun, end) = held(&pool, "a", length);
            begun.recv().expect("it begins");
            let (to, done) = channel();
            for name in 0..5 {
                note(&pool, "a", length, name, &to);
            }
            note(&pool, "b", length, 10, &to);
            note(&pool, "c", length, 20, &to);
            note(&pool, "b", length, 11, &to);
            end.send(()).expect("it waits");
            let order: Vec<usize> = done.iter().take(8).collect();
            assert_eq!(order, [0, 10, 20, 1, 11, 2, 3, 4]);
        }
    }

    /// However many tasks turn out to be long, the tasks that wait are served.
    #[test]
    fn a_worker_that_is_held_up_is_relieved() {
        let pool = pool(1, 64);
        let held: Vec<_> = (0..20)
            .map(|owner: u32| held(&pool, &owner.to_string(), Length::Short))
            .collect();
        let (to, done) = channel();
        note(&pool, "b", Length::Short, 7, &to);
        while done.try_recv().is_err() {
            pool.relieve(Duration::ZERO);
            std::thread::yield_now();
        }
        assert!(held[0].0.recv().is_ok());
        for (_, end) in held {
            end.send(()).ok();
        }
        while !pool.0.locked().relieved.is_empty() {
            std::thread::yield_now();
        }
        note(&pool, "a", Length::Short, 8, &to);
        assert_eq!(done.recv(), Ok(8));
    }

    #[test]
    fn a_watched_pool_relieves_by_itself_and_long_tasks_hold_nobody_up() {
        let pool = pool(1, 8).watched(Duration::from_millis(1));
        let pool = pool.expect("a thread");
        let held = [Length::Long, Length::Short].map(|length| held(&pool, "a", length));
        held.iter()
            .for_each(|(begun, _)| begun.recv().expect("it begins"));
        let (to, done) = channel();
        note(&pool, "b", Length::Short, 1, &to);
        assert_eq!(done.recv(), Ok(1));
    }

    /// However many tasks an owner brings, they hold up one worker.
    #[test]
    fn an_owner_that_holds_a_worker_up_waits_for_itself() {
        let pool = pool(1, 8);
        let holding: Vec<_> = (0..5).map(|_| held(&pool, "a", Length::Short)).collect();
        holding[0].0.recv().expect("it begins");
        let (to, done) = channel();
        note(&pool, "b", Length::Short, 1, &to);
        while done.try_recv().is_err() {
            pool.relieve(Duration::ZERO);
            std::thread::yield_now();
        }
        let later = held(&pool, "a", Length::Short);
        // The worker of the note may have been relieved too, and not have ended yet.
        let begun = Instant::now();
        let relieved = || pool.0.locked().relieved.len();
        while relieved() > 1 && begun.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert_eq!(relieved(), 1);
        holding[1].0.recv().expect("it runs among the long ones");
        assert!(holding[2].0.try_recv().is_err());
        for (_, end) in holding.iter().chain([&later]) {
            end.send(()).ok();
        }
        later.0.recv().expect("all of them run");
    }

    #[test]
    fn a_panic_ends_its_task_alone_and_without_threads_tasks_run_at_once() {
        for threads in [0, 1] {
            let pool = pool(threads, 8);
            pool.start(None, Length::Short, Box::new(|| panic!("the test says so")));
            let (to, done) = channel();
            note(&pool, "a", Length::Short, 1, &to);
            assert_eq!(done.recv(), Ok(1));
        }
    }
}
