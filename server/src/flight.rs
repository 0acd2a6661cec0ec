//! Work that several requests wait for: it is done once for all who ask for the same at the same time, and called off
//! when nobody is left who wants it.
//!
//! ```text
//!   request ─ Wanted ─► thread ─ Interest ─┐ leads
//!   request ─ Wanted ─► thread ─ Interest ─┴─► the flight of one key ─► work, which asks: does anybody wait?
//!      ╳ the client left, or its time is over: its interest is lost
//! ```
//!
//! The first who asks works on its own thread, for those who come later too, also if its own client leaves meanwhile.
//! A flight that was called off takes nobody on board any more: who comes then begins anew.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lexiform::limits::Cancel;

use crate::shelf::Owner;

/// How often one who waits for the work of another looks whether its own client is still there.
const LOOK: Duration = Duration::from_millis(50);

/// Held by a request as long as it waits for work.
#[derive(Default)]
pub struct Wanted(Interest);

impl Wanted {
    /// By a request of this owner, who is also the one with whom it shares the machine.
    pub fn by(owner: Owner) -> Self {
        Self::asked(Asker {
            share: owner.clone(),
            owner,
        })
    }

    /// By a request of these.
    pub fn asked(asker: Asker) -> Self {
        Self(Interest {
            asker,
            ..Interest::default()
        })
    }

    /// What the work looks at.
    pub fn interest(&self) -> Interest {
        self.0.clone()
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.lost.store(true, Ordering::Release);
    }
}

/// Whether somebody waits for some work; for ever, if it is not that of a [`Wanted`].
#[derive(Clone, Debug, Default)]
pub struct Interest {
    lost: Arc<AtomicBool>,
    asker: Asker,
}

/// Who asks.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    /// Who is charged for what a request leaves behind: the owner of its key.
    pub owner: Owner,
    /// With whom it takes turns: the owner of its key or, without keys, its connection.
    pub share: Owner,
}

impl Interest {
    /// Whether nobody waits any more.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Who is charged for what comes of the work.
    pub fn owner(&self) -> &Owner {
        &self.asker.owner
    }

    /// With whom the request takes turns at threads and the model.
    pub fn share(&self) -> &Owner {
        &self.asker.share
    }

    /// Calls off work of this request alone.
    pub fn cancel(&self) -> Cancel {
        let interest = self.clone();
        Cancel::when(move || interest.is_lost())
    }
}

/// All work that is being done, by what it is for.
pub struct Flights<K, V> {
    flying: Mutex<HashMap<K, Arc<Flight<V>>>>,
    running: AtomicUsize,
}

impl<K, V> Default for Flights<K, V> {
    fn default() -> Self {
        Self {
            flying: Mutex::default(),
            running: AtomicUsize::new(0),
        }
    }
}

struct Flight<V> {
    /// Whoever began it; looked at first, because mostly it stays.
    leader: Interest,
    board: Mutex<Board<V>>,
    landed: Condvar,
}

struct Board<V> {
    interests: Vec<Interest>,
    phase: Phase<V>,
}

enum Phase<V> {
    Flying,
    Unwanted,
    Landed(V),
    /// The work panicked.
    Lost,
}

/// A panic cannot leave these values half written: they are changed in single steps.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Clone + Eq + Hash, V: Clone + Send + 'static> Flights<K, V> {
    /// The outcome of work for this key: of what another does just now, or else of this. `None` where the interest was
    /// lost while another worked. A panic in the work is that of its leader alone; the others begin anew.
    pub fn join(&self, key: &K, interest: &Interest, work: impl FnOnce(Cancel) -> V) -> Option<V> {
        loop {
            let (flight, leads) = self.board(key, interest);
            if leads {
                let landing = Landing::of(self, key, flight);
                let value = work(landing.flight.cancel());
                landing.with(value.clone());
                return Some(value);
            }
            match flight.wait(interest) {
                Phase::Landed(value) => return Some(value),
                Phase::Lost => {}
                Phase::Flying | Phase::Unwanted => return None,
            }
        }
    }

    /// How much work is being done.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    fn board(&self, key: &K, interest: &Interest) -> (Arc<Flight<V>>, bool) {
        let mut flying = locked(&self.flying);
        if let Some(flight) = flying.get(key).filter(|flight| flight.takes(interest)) {
            return (flight.clone(), false);
        }
        let flight = Arc::new(Flight {
            leader: interest.clone(),
            board: Mutex::new(Board {
                interests: vec![interest.clone()],
                phase: Phase::Flying,
            }),
            landed: Condvar::new(),
        });
        flying.insert(key.clone(), flight.clone());
        (flight, true)
    }
}

impl<V: Clone + Send + 'static> Flight<V> {
    fn takes(&self, interest: &Interest) -> bool {
        let mut board = locked(&self.board);
        let flies = matches!(board.phase, Phase::Flying);
        if flies {
            board.interests.retain(|other| !other.is_lost());
            board.interests.push(interest.clone());
        }
        flies
    }

    fn cancel(self: &Arc<Self>) -> Cancel {
        let flight = self.clone();
        Cancel::when(move || flight.is_unwanted())
    }

    fn is_unwanted(&self) -> bool {
        if !self.leader.is_lost() {
            return false;
        }
        let mut board = locked(&self.board);
        let unwanted = board.interests.iter().all(Interest::is_lost);
        if unwanted && matches!(board.phase, Phase::Flying) {
            board.phase = Phase::Unwanted;
        }
        unwanted
    }

    /// Waits for the work of another; still flying where the interest was lost before.
    fn wait(&self, interest: &Interest) -> Phase<V> {
        let mut board = locked(&self.board);
        while !interest.is_lost() {
            match &board.phase {
                Phase::Landed(value) => return Phase::Landed(value.clone()),
                Phase::Lost => return Phase::Lost,
                Phase::Flying | Phase::Unwanted => {}
            }
            let woken = self.landed.wait_timeout(board, LOOK);
            board = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Phase::Flying
    }
}

/// Ends a flight, whatever becomes of its work.
struct Landing<'f, K: Eq + Hash, V> {
    flights: &'f Flights<K, V>,
    key: &'f K,
    flight: Arc<Flight<V>>,
    phase: Phase<V>,
}

impl<'f, K: Eq + Hash, V> Landing<'f, K, V> {
    fn of(flights: &'f Flights<K, V>, key: &'f K, flight: Arc<Flight<V>>) -> Self {
        flights.running.fetch_add(1, Ordering::AcqRel);
        Self {
            flights,
            key,
            flight,
            phase: Phase::Lost,
        }
    }

    fn with(mut self, value: V) {
        self.phase = Phase::Landed(value);
    }
}

impl<K: Eq + Hash, V> Drop for Landing<'_, K, V> {
    fn drop(&mut self) {
        let mut flying = locked(&self.flights.flying);
        if flying
            .get(self.key)
            .is_some_and(|other| Arc::ptr_eq(other, &self.flight))
        {
            flying.remove(self.key);
        }
        drop(flying);
        locked(&self.flight.board).phase = mem::replace(&mut self.phase, Phase::Lost);
        self.flight.landed.notify_all();
        self.flights.running.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    type Counts = Flights<&'static str, u32>;

    /// Work that nobody ever ends but by calling it off.
    fn endless(cancel: &Cancel) {
        while !cancel.is_asked() {
            thread::yield_now();
        }
    }

    #[test]
    fn who_comes_later_gets_the_same_work() {
        let flights = Arc::new(Counts::default());
        let (begun, has_begun) = channel();
        let (end, may_end) = channel::<()>();
        let first = thread::spawn({
            let flights = flights.clone();
            move || {
                flights.join(&"a", &Interest::default(), |_| {
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
            move || flights.join(&"a", &Interest::default(), |_| unreachable!("it is being done"))
        });
        let boarded = || {
            locked(&flights.flying)
                .get("a")
                .map(|flight| locked(&flight.board).interests.len())
        };
        while boarded() != Some(2) {
            thread::yield_now();
        }
        assert_eq!(
            flights.join(&"b", &Interest::default(), |_| 8),
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
        let flights = Arc::new(Counts::default());
        let (leader, follower) = (Wanted::default(), Wanted::default());
        let working = thread::spawn({
            let (flights, interest) = (flights.clone(), leader.interest());
            move || {
                flights.join(&"a", &interest, |cancel| {
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
            move || flights.join(&"a", &interest, |_| unreachable!("it is being done"))
        });
        let flight = locked(&flights.flying)["a"].clone();
        while locked(&flight.board).interests.len() < 2 {
            thread::yield_now();
        }
        drop(leader);
        assert!(!flight.is_unwanted(), "the other still waits");
        drop(follower);
        assert_eq!(waiting.join().expect("no panic"), None);
        working.join().expect("no panic");
        assert_eq!(flights.running(), 0);
        assert_eq!(flights.join(&"a", &Interest::default(), |_| 1), Some(1));
    }

    #[test]
    fn who_comes_when_work_was_called_off_begins_anew() {
        let flights = Counts::default();
        let wanted = Wanted::default();
        let (flight, leads) = flights.board(&"a", &wanted.interest());
        assert!(leads);
        drop(wanted);
        assert!(flight.is_unwanted());
        let (landing, again) = (Landing::of(&flights, &"a", flight), Interest::default());
        assert_eq!(flights.join(&"a", &again, |_| 2), Some(2));
        // The end of the old flight must not take a new one off.
        let (_, leads) = flights.board(&"a", &again);
        assert!(leads);
        landing.with(0);
        assert!(locked(&flights.flying).contains_key("a"));
    }

    #[test]
    fn a_panic_is_that_of_its_leader() {
        let flights = Counts::default();
        let broken = catch_unwind(AssertUnwindSafe(|| {
            flights.join(&"a", &Interest::default(), |_| panic!("the test says so"))
        }));
        assert!(broken.is_err());
        assert_eq!(flights.running(), 0);
        assert_eq!(flights.join(&"a", &Interest::default(), |_| 3), Some(3));
    }
}
