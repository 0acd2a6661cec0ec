//! A crew: threads that share the parts of some work.
//!
//! A pass of a small model is some fifty pieces of work of a few microseconds each. Waking a thread takes
//! longer than that, so the threads of a crew spin for as long as a pass may leave them without work, and
//! only then sleep. No thread waits for a sleeping one: whichever threads are awake take the parts, and the
//! caller takes part.
//!
//! ```text
//!   caller    each(8 parts) ─ publishes ─ 0 ─ 2 ─ 4 ─ 6 ─ waits for 7 ─►
//!   thread                      looking ─── 1 ─ 3 ─ 5 ─ 7 ─ looking …… asleep
//! ```

use super::atomics::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Builder, JoinHandle, Mutex, park, spin_loop, yield_now,
};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, TryLockError};

/// How often a thread checks for work before it sleeps: some 50 microseconds. Loom would try all of these
/// checks.
const LOOKS: usize = if cfg!(loom) { 1 } else { 2_000 };
/// How often the caller checks whether the others are done before it yields its core to other programs.
const PATIENCE: usize = 10_000;

/// Some work, called with the number of each part.
type TeamWork<'a> = &'a (dyn Fn(usize) + Sync);

/// Threads that wait for work. They end when the crew is dropped.
pub(crate) struct Crew {
    shared: Arc<TeamShared>,
    others: Vec<JoinHandle<()>>,
    /// Held by the caller that hands out work.
    caller: Mutex<()>,
}

/// The state shared by the caller and the threads.
struct TeamShared {
    /// The current [`Taken`], in one number: a thread that takes a part exchanges all of it, so a part never
    /// belongs to other work.
    taken: AtomicU64,
    done: AtomicUsize,
    /// A pointer to the [`TeamWork`] while parts of it are not done.
    work: AtomicPtr<()>,
    has_panicked: AtomicBool,
    has_ended: AtomicBool,
    /// `true` for each thread that sleeps.
    asleep: Vec<AtomicBool>,
}

/// The parts of the current work that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Taken {
    /// The number of the work, of 24 bits; it wraps around.
    number: u64,
    /// The number of its parts, in 20 bits.
    parts: u64,
    /// The number of parts that are taken, in the lowest 20 bits.
    taken: u64,
}

const NUMBERS: u64 = (1 << 24) - 1;
const MOST_PARTS: usize = (1 << 20) - 1;

impl Taken {
    fn of(packed: u64) -> Self {
        let most = MOST_PARTS as u64;
        Taken {
            number: packed >> 40,
            parts: packed >> 20 & most,
            taken: packed & most,
        }
    }

    fn packed(self) -> u64 {
        self.number << 40 | self.parts << 20 | self.taken
    }
}

impl Crew {
    /// Creates a crew of `threads` threads, including the caller, or as many of them as the system provides.
    pub(crate) fn new(threads: usize) -> Self {
        let others = threads.saturating_sub(1);
        let shared = Arc::new(TeamShared {
            taken: AtomicU64::new(0),
            done: AtomicUsize::new(0),
            work: AtomicPtr::new(null_mut()),
            has_panicked: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            asleep: (0..others).map(|_| AtomicBool::new(false)).collect(),
        });
        let start = |number| {
            let shared = shared.clone();
            let name = Builder::new().name("lexiform-crew".to_owned());
            name.spawn(move || shared.serve(number)).ok()
        };
        Crew {
            others: (0..others).map_while(start).collect(),
            shared,
            caller: Mutex::new(()),
        }
    }

    /// Returns the number of threads, including the caller.
    pub(crate) fn threads(&self) -> usize {
        self.others.len() + 1
    }

    /// Does all parts of some work, in any order and on any thread, and returns when they are done. If two
    /// callers call it at the same time, the second does its work alone. If a part panics, this panics after
    /// the other parts are done.
    pub(crate) fn each(&self, parts: usize, work: TeamWork<'_>) {
        let alone = || (0..parts).for_each(work);
        if parts <= 1 || parts > MOST_PARTS || self.others.is_empty() {
            return alone();
        }
        let _caller = match self.caller.try_lock() {
            Ok(caller) => caller,
            // A part panicked, which left nothing half done.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return alone(),
        };
        let number = self.shared.publish(parts, &work);
        for (thread, asleep) in self.others.iter().zip(&self.shared.asleep) {
            if asleep.load(SeqCst) {
                thread.thread().unpark();
            }
        }
        let panic = self.shared.take_part(number);
        let mut looks = 0;
        while self.shared.done.load(Acquire) < parts {
            looks += 1;
            if looks < PATIENCE {
                spin_loop()
            } else {
                yield_now()
            }
        }
        let has_panicked = self.shared.has_panicked.swap(false, Relaxed);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        assert!(!has_panicked, "a thread of a crew panicked");
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, SeqCst);
        for thread in self.others.drain(..) {
            thread.thread().unpark();
            // A thread catches all panics itself.
            drop(thread.join());
        }
    }
}

impl TeamShared {
    /// Publishes work, and returns its number. All parts of the previous work are done.
    fn publish(&self, parts: usize, work: &TeamWork<'_>) -> u64 {
        let before = Taken::of(self.taken.load(Relaxed));
        let now = Taken {
            number: before.number.wrapping_add(1) & NUMBERS,
            parts: parts as u64,
            taken: 0,
        };
        self.work
            .store(std::ptr::from_ref(work).cast_mut().cast(), Relaxed);
        self.done.store(0, Relaxed);
        self.taken.store(now.packed(), SeqCst);
        now.number
    }

    /// Takes a part of the work with this number, if one is left.
    fn take(&self, number: u64) -> Option<usize> {
        let mut taken = self.taken.load(Acquire);
        loop {
            let now = Taken::of(taken);
            if now.number != number || now.taken == now.parts {
                return None;
            }
            match self
                .taken
                .compare_exchange_weak(taken, taken + 1, SeqCst, Acquire)
            {
                Ok(_) => return Some(now.taken as usize),
                Err(now) => taken = now,
            }
        }
    }

    /// Does parts of the work with this number until none is left, and returns the last panic in them.
    fn take_part(&self, number: u64) -> Option<Box<dyn Any + Send>> {
        let mut panic = None;
        while let Some(part) = self.take(number) {
            // SAFETY: the part was taken and is not done, so the caller of `each` has not returned: the work
            // that it published still exists, and has this number.
            let work: TeamWork<'_> = unsafe { *self.work.load(Relaxed).cast::<TeamWork<'_>>() };
            if let Err(own) = catch_unwind(AssertUnwindSafe(|| work(part))) {
                // Set before the part is done, so that the caller sees it.
                self.has_panicked.store(true, Relaxed);
                panic = Some(own);
            }
            self.done.fetch_add(1, Release);
        }
        panic
    }

    /// Waits for work and takes part in it, until the crew ends.
    fn serve(&self, thread: usize) {
        let mut number = 0;
        let mut looks = 0;
        while !self.has_ended.load(SeqCst) {
            let now = Taken::of(self.taken.load(SeqCst)).number;
            if now != number {
                (number, looks) = (now, 0);
                // `has_panicked` reports the panic to the caller.
                drop(self.take_part(number));
            } else if looks < LOOKS {
                looks += 1;
                spin_loop();
            } else {
                self.sleep(thread, number);
                looks = 0;
            }
        }
    }

    /// Sleeps until there is other work than the one with this number.
    fn sleep(&self, thread: usize, number: u64) {
        self.asleep[thread].store(true, SeqCst);
        // A caller that publishes after this check sees that this thread sleeps.
        while Taken::of(self.taken.load(SeqCst)).number == number && !self.has_ended.load(SeqCst) {
            park();
        }
        self.asleep[thread].store(false, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_one_number() {
        let all = Taken {
            number: NUMBERS,
            parts: MOST_PARTS as u64,
            taken: MOST_PARTS as u64 - 1,
        };
        assert_eq!(Taken::of(all.packed()), all);
        assert_eq!(Taken::of(all.packed() + 1).taken, MOST_PARTS as u64);
    }

    #[test]
    fn every_part_is_done_once() {
        for threads in [1, 2, 5] {
            let crew = Crew::new(threads);
            for round in 0..20_000 {
                let parts = round % 9;
                let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                crew.each(parts, &|part| {
                    counts[part].fetch_add(1, Relaxed);
                });
                assert!(counts.iter().all(|count| count.load(Relaxed) == 1));
                if round % 5_000 == 0 {
                    // Long enough for the threads to fall asleep.
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            }
        }
    }

    #[test]
    fn callers_at_once_are_all_served() {
        let crew = Crew::new(3);
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        crew.each(5, &|part| {
                            sum.fetch_add(part, Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(sum.load(Relaxed), 4 * 300 * 10);
    }

    #[test]
    fn a_panic_reaches_the_caller_after_the_other_parts_and_work_goes_on() {
        let crew = Crew::new(3);
        for _ in 0..50 {
            let done = AtomicUsize::new(0);
            let work = |part: usize| {
                assert!(part != 3, "part 3");
                done.fetch_add(1, Relaxed);
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| crew.each(8, &work)));
            assert!(outcome.is_err());
            assert_eq!(done.load(Relaxed), 7);
        }
        let done = AtomicUsize::new(0);
        crew.each(8, &|_| {
            done.fetch_add(1, Relaxed);
        });
        assert_eq!(done.load(Relaxed), 8);
    }
}
