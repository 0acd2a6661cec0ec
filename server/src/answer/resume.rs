//! Streams that outlive their connection: a client that lost its connection can continue reading after the
//! last event that it saw.
//!
//! ```text
//!   engine ─► EventStream ─► [ events 0, 1, 2, … kept ] ─► reader ─► client
//!                                        ▲                     ╳ connection lost
//!                                        └── GET /v1/streams/ID, Last-Event-ID: 17 ─► reader from 18
//! ```
//!
//! A separate task drives the answer, not the connection. The kept events are bounded in bytes over all
//! streams, and in time: a stream without readers is forgotten after a while, and if it was still running,
//! its samples are cancelled.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use actix_web::web::Bytes;
use futures_core::Stream;
use futures_util::StreamExt as _;
use tokio::time::MissedTickBehavior;

use crate::answer::stream::EventStream;
use crate::wire::error::ApiError;

/// The limits on how much is kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct ResumeLimits {
    /// The maximum number of bytes of all streams together.
    pub bytes: usize,
    /// How long a stream without readers is kept; zero keeps no stream.
    pub time: Duration,
}

impl Default for ResumeLimits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            time: Duration::from_secs(60),
        }
    }
}

/// All streams that can be resumed.
#[derive(Default)]
pub struct Streams {
    keeping: ResumeLimits,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    bytes: usize,
    streams: HashMap<String, Arc<Log>>,
}

/// The events of one stream so far.
struct Log {
    owner: Option<String>,
    state: Mutex<State>,
}

struct State {
    events: Vec<Bytes>,
    bytes: usize,
    complete: bool,
    readers: usize,
    left: Instant,
    wakers: Vec<Waker>,
}

/// A panic cannot leave these values half written: each change is a single step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Streams {
    /// Creates an empty set of streams with these limits.
    pub fn new(keeping: ResumeLimits) -> Self {
        Self {
            keeping,
            kept: Mutex::default(),
        }
    }

    /// Lets an answer run on its own and returns its identity and its first reader. Must be called inside the
    /// runtime.
    ///
    /// # Errors
    /// Fails if streams are not kept here, or if there is no room for more.
    pub fn open(
        self: Arc<Self>,
        owner: Option<&str>,
        stream: EventStream,
    ) -> Result<(String, Reader), ApiError> {
        let log = Arc::new(Log {
            owner: owner.map(str::to_owned),
            state: Mutex::new(State {
                events: Vec::new(),
                bytes: 0,
                complete: false,
                readers: 0,
                left: Instant::now(),
                wakers: Vec::new(),
            }),
        });
        let id = format!("st_{}", crate::operate::random::identity());
        {
            let mut kept = locked(&self.kept);
            if self.keeping.time.is_zero() || kept.bytes >= self.keeping.bytes {
                return Err(ApiError::no_room_for_streams());
            }
            kept.streams.insert(id.clone(), log.clone());
        }
        let reader = Reader::of(log.clone(), 0);
        actix_web::rt::spawn(self.drive(id.clone(), log, stream));
        Ok((id, reader))
    }

    /// Returns a reader of a stream from this event on, if the stream belongs to `owner`.
    pub fn reader(&self, id: &str, owner: Option<&str>, from: usize) -> Option<Reader> {
        let log = locked(&self.kept).streams.get(id).cloned();
        let log = log.filter(|log| log.owner.as_deref() == owner)?;
        Some(Reader::of(log, from))
    }

    async fn drive(self: Arc<Self>, id: String, log: Arc<Log>, mut stream: EventStream) {
        let mut look = tokio::time::interval((self.keeping.time / 4).max(Duration::from_millis(10)));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                piece = stream.next() => match piece {
                    Some(Ok(bytes)) if self.keep(&log, &bytes) => {}
                    Some(_) => {
                        stream.fail(&ApiError::no_room_for_streams(), &mut |bytes| {
                            locked(&self.kept).add(&log, bytes);
                        });
                        break;
                    }
                    None => break,
                },
                _ = look.tick() => if log.forgotten(self.keeping.time) { break },
            }
        }
        // Frees the sequences and closes the account; only text is kept from here on.
        drop(stream);
        log.end();
        while !log.forgotten(self.keeping.time) {
            look.tick().await;
        }
        let mut kept = locked(&self.kept);
        kept.streams.remove(&id);
        kept.bytes -= locked(&log.state).bytes;
    }

    /// Keeps a piece if there is room, and returns `true` if it did.
    fn keep(&self, log: &Log, piece: &Bytes) -> bool {
        let mut kept = locked(&self.kept);
        if kept.bytes + piece.len() > self.keeping.bytes {
            return false;
        }
        kept.add(log, piece);
        true
    }
}

impl Kept {
    /// Keeps a piece regardless of the limit: the error that ends a stream for lack of room must be readable.
    fn add(&mut self, log: &Log, piece: &[u8]) {
        let before = locked(&log.state).bytes;
        log.push(piece);
        self.bytes += locked(&log.state).bytes - before;
    }
}

impl Log {
    /// Adds the events of a piece, each with its number.
    fn push(&self, piece: &[u8]) {
        let mut state = locked(&self.state);
        let text = String::from_utf8_lossy(piece);
        for event in text.split_inclusive("\n\n") {
            let event = Bytes::from(format!("id: {}\n{event}", state.events.len()));
            state.bytes += event.len();
            state.events.push(event);
        }
        state.wake();
    }

    fn end(&self) {
        let mut state = locked(&self.state);
        state.complete = true;
        state.wake();
    }

    /// Returns `true` if no reader has read the stream for this long.
    fn forgotten(&self, time: Duration) -> bool {
        let state = locked(&self.state);
        state.readers == 0 && state.left.elapsed() >= time
    }
}

impl State {
    /// A reader may be polled many times between two events; it is woken once.
    fn wake_later(&mut self, waker: &Waker) {
        if !self.wakers.iter().any(|other| other.will_wake(waker)) {
            self.wakers.push(waker.clone());
        }
    }

    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

/// The body of a resumed answer: the events from a given number on.
pub struct Reader {
    log: Arc<Log>,
    next: usize,
}

impl Reader {
    fn of(log: Arc<Log>, next: usize) -> Self {
        locked(&log.state).readers += 1;
        Self { log, next }
    }
}

impl Stream for Reader {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut state = locked(&this.log.state);
        if let Some(events) = state.events.get(this.next..).filter(|events| !events.is_empty()) {
            let joined = Bytes::from(events.concat());
            this.next = state.events.len();
            return Poll::Ready(Some(Ok(joined)));
        }
        if state.complete {
            return Poll::Ready(None);
        }
        state.wake_later(context.waker());
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = locked(&self.log.state);
        state.readers -= 1;
        state.left = Instant::now();
    }
}
