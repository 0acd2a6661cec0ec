//! Single flight: concurrent calls for the same key share one run of the work, which is cancelled when no
//! caller waits for it any more.
//!
//! ```text
//!   request ─ InterestGuard ─► thread ─ Interest ─┐ leads
//!   request ─ InterestGuard ─► thread ─ Interest ─┴─► the call of one key ─► work, which asks: does anybody wait?
//!      ╳ the client left, or its time is over: its interest is lost
//! ```
//!
//! The first caller does the work on its own thread, also for callers that come later, and also if its own
//! client leaves meanwhile. A cancelled call admits no more waiters: a later caller starts again.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lexiform::limits::Cancel;

use crate::grammars::interest::Interest;

/// How often a waiting caller checks whether its own client is still there.
const LOOK: Duration = Duration::from_millis(50);

/// The calls that are running, by their keys.
pub struct SingleFlight<K, V> {
    calls: Mutex<HashMap<K, Arc<Call<V>>>>,
    running: AtomicUsize,
}

impl<K, V> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            running: AtomicUsize::new(0),
        }
    }
}

struct Call<V> {
    /// The caller that began the work; it is checked first, because it usually stays.
    leader: Interest,
    waiters: Mutex<Waiters<V>>,
    finished: Condvar,
}

struct Waiters<V> {
    interests: Vec<Interest>,
    phase: FlightPhase<V>,
}

enum FlightPhase<V> {
    Running,
    Cancelled,
    Done(V),
    /// The work panicked.
    Panicked,
}

/// A panic cannot leave these values half written: each change is a single step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Clone + Eq + Hash, V: Clone + Send + 'static> SingleFlight<K, V> {
    /// Returns the outcome of the work for this key: of a run in progress, or else of `work`. Returns `None`
    /// if the interest was lost while another caller worked. A panic in the work affects only its leader; the
    /// others start again.
    pub fn run(&self, key: &K, interest: &Interest, work: impl FnOnce(Cancel) -> V) -> Option<V> {
        loop {
            let (call, leads) = self.enter(key, interest);
            if leads {
                let completion = Completion::of(self, key, call);
                let value = work(completion.call.cancel());
                completion.with(value.clone());
                return Some(value);
            }
            match call.wait(interest) {
                FlightPhase::Done(value) => return Some(value),
                FlightPhase::Panicked => {}
                FlightPhase::Running | FlightPhase::Cancelled => return None,
            }
        }
    }

    /// Returns the number of runs in progress.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    fn enter(&self, key: &K, interest: &Interest) -> (Arc<Call<V>>, bool) {
        let mut calls = locked(&self.calls);
        if let Some(call) = calls.get(key).filter(|call| call.admits(interest)) {
            return (call.clone(), false);
        }
        let call = Arc::new(Call {
            leader: interest.clone(),
            waiters: Mutex::new(Waiters {
                interests: vec![interest.clone()],
                phase: FlightPhase::Running,
            }),
            finished: Condvar::new(),
        });
        calls.insert(key.clone(), call.clone());
        (call, true)
    }
}

impl<V: Clone + Send + 'static> Call<V> {
    fn admits(&self, interest: &Interest) -> bool {
        let mut waiters = locked(&self.waiters);
        let runs = matches!(waiters.phase, FlightPhase::Running);
        if runs {
            waiters.interests.retain(|other| !other.is_lost());
            waiters.interests.push(interest.clone());
        }
        runs
    }

    fn cancel(self: &Arc<Self>) -> Cancel {
        let call = self.clone();
        Cancel::when(move || call.is_cancelled())
    }

    fn is_cancelled(&self) -> bool {
        if !self.leader.is_lost() {
            return false;
        }
        let mut waiters = locked(&self.waiters);
        let cancelled = waiters.interests.iter().all(Interest::is_lost);
        if cancelled && matches!(waiters.phase, FlightPhase::Running) {
            waiters.phase = FlightPhase::Cancelled;
        }
        cancelled
    }

    /// Waits for the work of another caller; returns `Running` if the interest was lost before it ended.
    fn wait(&self, interest: &Interest) -> FlightPhase<V> {
        let mut waiters = locked(&self.waiters);
        while !interest.is_lost() {
            match &waiters.phase {
                FlightPhase::Done(value) => return FlightPhase::Done(value.clone()),
                FlightPhase::Panicked => return FlightPhase::Panicked,
                FlightPhase::Running | FlightPhase::Cancelled => {}
            }
            let woken = self.finished.wait_timeout(waiters, LOOK);
            waiters = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        FlightPhase::Running
    }
}

/// Ends a call when dropped, whatever the outcome of its work.
struct Completion<'f, K: Eq + Hash, V> {
    flights: &'f SingleFlight<K, V>,
    key: &'f K,
    call: Arc<Call<V>>,
    phase: FlightPhase<V>,
}

impl<'f, K: Eq + Hash, V> Completion<'f, K, V> {
    fn of(flights: &'f SingleFlight<K, V>, key: &'f K, call: Arc<Call<V>>) -> Self {
        flights.running.fetch_add(1, Ordering::AcqRel);
        Self {
            flights,
            key,
            call,
            phase: FlightPhase::Panicked,
        }
    }

    fn with(mut self, value: V) {
        self.phase = FlightPhase::Done(value);
    }
}

impl<K: Eq + Hash, V> Drop for Completion<'_, K, V> {
    fn drop(&mut self) {
        let mut calls = locked(&self.flights.calls);
        if calls
            .get(self.key)
            .is_some_and(|other| Arc::ptr_eq(other, &self.call))
        {
            calls.remove(self.key);
        }
        drop(calls);
        locked(&self.call.waiters).phase = mem::replace(&mut self.phase, FlightPhase::Panicked);
        self.call.finished.notify_all();
        self.flights.running.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;
    use crate::grammars::interest::InterestGuard;

    type FlightCounts = SingleFlight<&'static str, u32>;

    /// Work that ends only when it is cancelled.
    fn endless(cancel: &Cancel) {
        while !cancel.is_asked() {
            thread::yield_now();
        }
    }

    #[test]
    fn who_comes_later_gets_the_same_work() {
        let flights = Arc::new(FlightCounts::default());
        let (begun, has_begun) = channel();
        let (end, may_end) = channel::<()>();
        let first = thread::spawn({
            let flights = flights.clone();
            move || {
                flights.run(&"a", &Interest::default(), |_| {
                    begun.send(()).expect("somebody listens");
                    may_end.recv().expect("somebody says so");
                    7
                })
            }
        });
        has_begun.recv().expect("it begins");
        assert_eq!(flights.running(), 1);
        let second = thread::spawn({
            let flights = flights.clone();
            move || flights.run(&"a", &Interest::default(), |_| unreachable!("it is being done"))
        });
        let waiting = || {
            locked(&flights.calls)
                .get("a")
                .map(|call| locked(&call.waiters).interests.len())
        };
        while waiting() != Some(2) {
            thread::yield_now();
        }
        assert_eq!(
            flights.run(&"b", &Interest::default(), |_| 8),
            Some(8),
            "other work goes on"
        );
        end.send(()).expect("it waits");
        assert_eq!(first.join().expect("no panic"), Some(7));
        assert_eq!(second.join().expect("no panic"), Some(7));
        assert_eq!(flights.running(), 0);
    }

    #[test]
    fn work_is_called_off_when_the_last_has_left() {
        let flights = Arc::new(FlightCounts::default());
        let (leader, follower) = (InterestGuard::default(), InterestGuard::default());
        let working = thread::spawn({
            let (flights, interest) = (flights.clone(), leader.interest());
            move || {
                flights.run(&"a", &interest, |cancel| {
                    endless(&cancel);
                    0
                })
            }
        });
        while flights.running() == 0 {
            thread::yield_now();
        }
        let waiting = thread::spawn({
            let (flights, interest) = (flights.clone(), follower.interest());
            move || flights.run(&"a", &interest, |_| unreachable!("it is being done"))
        });
        let call = locked(&flights.calls)["a"].clone();
        while locked(&call.waiters).interests.len() < 2 {
            thread::yield_now();
        }
        drop(leader);
        assert!(!call.is_cancelled(), "the other still waits");
        drop(follower);
        assert_eq!(waiting.join().expect("no panic"), None);
        working.join().expect("no panic");
        assert_eq!(flights.running(), 0);
        assert_eq!(flights.run(&"a", &Interest::default(), |_| 1), Some(1));
    }

    #[test]
    fn who_comes_when_work_was_called_off_begins_anew() {
        let flights = FlightCounts::default();
        let wanted = InterestGuard::default();
        let (call, leads) = flights.enter(&"a", &wanted.interest());
        assert!(leads);
        drop(wanted);
        assert!(call.is_cancelled());
        let (completion, again) = (Completion::of(&flights, &"a", call), Interest::default());
        assert_eq!(flights.run(&"a", &again, |_| 2), Some(2));
        // The end of the old call must not remove a new one.
        let (_, leads) = flights.enter(&"a", &again);
        assert!(leads);
        completion.with(0);
        assert!(locked(&flights.calls).contains_key("a"));
    }

    #[test]
    fn a_panic_is_that_of_its_leader() {
        let flights = FlightCounts::default();
        let broken = catch_unwind(AssertUnwindSafe(|| {
            flights.run(&"a", &Interest::default(), |_| panic!("the test says so"))
        }));
        assert!(broken.is_err());
        assert_eq!(flights.running(), 0);
        assert_eq!(flights.run(&"a", &Interest::default(), |_| 3), Some(3));
    }
}
