//! Reads a request's body within its limits: on bytes, on time, and on the total of all bodies.
//!
//! ```text
//!   head ─► a place among the arriving bodies ─► chunk by chunk, room for each ─► whole ─► read, room freed
//!           if there are too many,               too slow: 408     no room: 503
//!           the oldest loses its place: 503
//! ```
//!
//! Honest bodies arrive within a round trip or two. So when there are too many, the oldest of the arriving
//! ones has to make room, and the last eighth of the bytes is reserved for small bodies: a client that opens
//! thousands of connections and leaves their bodies unfinished displaces itself, and not the small requests
//! of others.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::{HttpRequest, web};
use futures_util::StreamExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::operate::metrics::gauges::BodyCounts;
use crate::wire::error::ApiError;

/// The number of bytes by which a body may exceed its limit and still be read and discarded. If a connection
/// is closed while its client still sends, the answer is lost; so honest clients see why they were refused,
/// and floods are cut off.
const DRAINED: usize = 16 << 20;
/// The maximum size of a small body, for which there is room even if there is none for larger ones.
const SMALL_BODY: usize = 64 << 10;
/// The time in which no body counts as too slow.
const GRACE: Duration = Duration::from_secs(5);
/// The minimum average rate of a body after that, in bytes per second.
const RATE: f64 = 1024.0;
/// Bodies larger than this take turns, because the values and tokens made from a body may take a hundred
/// times its size.
const LARGE_BODY: usize = 32 << 10;
/// The total bytes of large bodies whose requests are prepared at a time; a larger one is prepared alone.
const TURNS: usize = 1 << 20;

/// The limits on request bodies.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// The time within which a body must arrive.
    pub time: Duration,
    /// The maximum bytes of all bodies that are arriving, or waiting until their requests are prepared.
    pub total_bytes: usize,
    /// The maximum number of bodies that may be unfinished at a time.
    pub unfinished: usize,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            total_bytes: 64 << 20,
            unfinished: 512,
        }
    }
}

/// The reasons why a body was refused while it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The body took too long, or arrived too slowly.
    Time,
    /// All bodies together have too many bytes.
    Bytes,
    /// Too many bodies are unfinished, and this was the oldest.
    Crowd,
}

/// The names of the refusals, in the order of the variants.
const REFUSALS: [&str; 3] = ["time", "bytes", "crowd"];

/// All bodies that are arriving, and those whose requests are being prepared.
#[derive(Debug)]
pub struct Bodies {
    limits: BodyLimits,
    held: AtomicUsize,
    /// The arriving bodies in the order in which they began, with the token that cancels each.
    arriving: Mutex<BTreeMap<u64, CancellationToken>>,
    begun: AtomicU64,
    refused: [AtomicU64; 3],
    large: Arc<Semaphore>,
}

impl Bodies {
    /// Creates an empty set of bodies.
    pub fn new(limits: BodyLimits) -> Self {
        Self {
            limits,
            held: AtomicUsize::new(0),
            arriving: Mutex::default(),
            begun: AtomicU64::new(0),
            refused: Default::default(),
            large: Arc::new(Semaphore::new(TURNS)),
        }
    }

    /// Returns the current counts.
    pub fn counts(&self) -> BodyCounts {
        let mut refused = REFUSALS.map(|name| (name, 0));
        for ((_, count), counter) in refused.iter_mut().zip(&self.refused) {
            *count = counter.load(Ordering::Relaxed);
        }
        BodyCounts {
            bytes: self.held.load(Ordering::Acquire),
            unfinished: self.places().len(),
            refused,
        }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<u64, CancellationToken>> {
        self.arriving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a place for one more body; if there are too many, the oldest loses its place.
    fn arrive(self: &Arc<Self>) -> BodyPlace {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let ended = CancellationToken::new();
        let mut places = self.places();
        places.insert(number, ended.clone());
        if places.len() > self.limits.unfinished
            && let Some((_, oldest)) = places.pop_first()
        {
            oldest.cancel();
        }
        drop(places);
        BodyPlace {
            bodies: self.clone(),
            number,
            ended,
        }
    }

    fn refuse(&self, refusal: Refusal) -> ApiError {
        self.refused[refusal as usize].fetch_add(1, Ordering::Relaxed);
        match refusal {
            Refusal::Time => ApiError::body_timed_out(self.limits.time.as_secs_f64()),
            Refusal::Bytes => ApiError::bodies_full("bytes", self.limits.total_bytes),
            Refusal::Crowd => ApiError::bodies_full("bodies", self.limits.unfinished),
        }
    }
}

/// A place among the arriving bodies.
struct BodyPlace {
    bodies: Arc<Bodies>,
    number: u64,
    /// Cancelled when the place is lost.
    ended: CancellationToken,
}

impl Drop for BodyPlace {
    fn drop(&mut self) {
        self.bodies.places().remove(&self.number);
    }
}

/// The bytes that are reserved for one body.
#[derive(Debug)]
struct BodyRoom {
    bodies: Arc<Bodies>,
    bytes: usize,
}

impl BodyRoom {
    /// Reserves this many bytes in total.
    fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else {
            return Ok(());
        };
        let total = self.bodies.limits.total_bytes;
        let most = if bytes <= SMALL_BODY {
            total
        } else {
            total - total / 8
        };
        let fits = |held: usize| held.checked_add(more).filter(|held| *held <= most);
        let held = &self.bodies.held;
        held.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits)
            .map_err(|_| self.bodies.refuse(Refusal::Bytes))?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for BodyRoom {
    fn drop(&mut self) {
        self.bodies.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A whole body. Its bytes count towards the total of all bodies until it is dropped.
#[derive(Debug)]
pub struct Body {
    bytes: Vec<u8>,
    _room: BodyRoom,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads the whole body. A large one is returned when its turn has come: few are prepared at a time.
///
/// # Errors
/// Fails if the body is larger than `limit`, not declared as JSON, compressed, or incomplete; if it arrives
/// too slowly; or if all bodies together take too much.
pub async fn read(
    request: &HttpRequest,
    payload: web::Payload,
    (bodies, limit): (&Arc<Bodies>, usize),
) -> Result<Body, ApiError> {
    let head = check_head(request);
    let declared = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|declared| declared > limit.saturating_add(DRAINED)) {
        return Err(ApiError::too_large(limit));
    }
    let mut arriving = Arriving {
        place: bodies.arrive(),
        room: BodyRoom {
            bodies: bodies.clone(),
            bytes: 0,
        },
        payload,
        begun: Instant::now(),
        received: 0,
        bytes: Vec::new(),
    };
    arriving.collect(limit).await?;
    head?;
    if arriving.received > limit {
        return Err(ApiError::too_large(limit));
    }
    let Arriving {
        place, room, bytes, ..
    } = arriving;
    drop(place);
    let turn = match bytes.len() {
        0..=LARGE_BODY => None,
        large => {
            let turn = bodies.large.clone().acquire_many_owned(large.min(TURNS) as u32);
            let turn = tokio::time::timeout(bodies.limits.time, turn).await;
            turn.map_err(|_| bodies.refuse(Refusal::Bytes))?.ok()
        }
    };
    Ok(Body {
        bytes,
        _room: room,
        _turn: turn,
    })
}

/// A body that is not complete yet.
struct Arriving {
    place: BodyPlace,
    room: BodyRoom,
    payload: web::Payload,
    begun: Instant,
    received: usize,
    bytes: Vec<u8>,
}

impl Arriving {
    async fn collect(&mut self, limit: usize) -> Result<(), ApiError> {
        let bodies = self.place.bodies.clone();
        loop {
            let chunk = tokio::select! {
                chunk = timeout_at(self.deadline(), self.payload.next()) => chunk,
                () = self.place.ended.cancelled() => return Err(bodies.refuse(Refusal::Crowd)),
            };
            let Some(chunk) = chunk.map_err(|_| bodies.refuse(Refusal::Time))? else {
                return Ok(());
            };
            let chunk = chunk.map_err(|error| {
                let message = format!("The request body could not be read: {error}.");
                ApiError::transport(StatusCode::BAD_REQUEST, message)
            })?;
            self.received += chunk.len();
            if self.received <= limit {
                self.take(&chunk, limit)?;
            } else if self.received > limit.saturating_add(DRAINED) {
                return Ok(());
            }
        }
    }

    /// Returns the deadline for the next chunk.
    fn deadline(&self) -> Instant {
        let earned = Duration::from_secs_f64(self.received as f64 / RATE);
        self.begun + self.place.bodies.limits.time.min(GRACE.saturating_add(earned))
    }

    fn take(&mut self, chunk: &[u8], limit: usize) -> Result<(), ApiError> {
        let wanted = self.bytes.len() + chunk.len();
        if wanted > self.bytes.capacity() {
            let capacity = wanted.max(2 * self.bytes.capacity()).min(limit);
            self.room.grow(capacity)?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }
}

/// Checks the headers: a page in a browser could send a body to this server without asking its user if the
/// body did not have to be declared as JSON.
fn check_head(request: &HttpRequest) -> Result<(), ApiError> {
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    if let Some(encoding) = request
        .headers()
        .get(CONTENT_ENCODING)
        .filter(|encoding| *encoding != "identity")
    {
        let encoding = String::from_utf8_lossy(encoding.as_bytes()).into_owned();
        return Err(ApiError::transport(
            status,
            format!("The content encoding '{encoding}' is not supported."),
        ));
    }
    let Some(kind) = request.headers().get(CONTENT_TYPE) else {
        return Ok(());
    };
    let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    let message = format!("Send the body with 'content-type: application/json', not '{essence}'.");
    Err(ApiError::transport(status, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(total_bytes: usize, unfinished: usize) -> Arc<Bodies> {
        Arc::new(Bodies::new(BodyLimits {
            total_bytes,
            unfinished,
            ..BodyLimits::default()
        }))
    }

    fn room(bodies: &Arc<Bodies>) -> BodyRoom {
        BodyRoom {
            bodies: bodies.clone(),
            bytes: 0,
        }
    }

    /// Guards against a few large bodies that leave no room for the small bodies of others.
    #[test]
    fn the_last_eighth_of_the_bytes_is_for_small_bodies() {
        let bodies = bodies(8 << 20, 10);
        let mut large: Vec<BodyRoom> = (0..8).map(|_| room(&bodies)).collect();
        let grown = large.iter_mut().filter_map(|room| room.grow(1 << 20).ok());
        assert_eq!(grown.count(), 7);
        let mut small: Vec<BodyRoom> = (0..20).map(|_| room(&bodies)).collect();
        let grown = small.iter_mut().filter_map(|room| room.grow(SMALL_BODY).ok());
        assert_eq!(grown.count(), (1 << 20) / SMALL_BODY);
        assert_eq!(bodies.counts().bytes, 8 << 20);
        drop((large, small));
        assert_eq!(bodies.counts().bytes, 0);
    }

    /// Guards against thousands of unfinished bodies that keep out an honest one.
    #[test]
    fn the_oldest_body_gives_up_its_place() {
        let bodies = bodies(1 << 20, 2);
        let (first, second) = (bodies.arrive(), bodies.arrive());
        assert!(!first.ended.is_cancelled());
        let third = bodies.arrive();
        assert!(first.ended.is_cancelled() && !second.ended.is_cancelled() && !third.ended.is_cancelled());
        assert_eq!(bodies.counts().unfinished, 2);
        drop((first, second, third));
        assert_eq!(bodies.counts().unfinished, 0);
    }
}
