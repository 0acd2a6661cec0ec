//! Traces: how a request spent its time, exported to a collector over OpenTelemetry's protocol.
//!
//! ```text
//!   POST /v1/chat/completions ─────────────────────────────────────────┐
//!   ├ template ─┤ compile ─┤ queue ─┤ prefill ─┤ decode ──────┤ finish ┤
//!   account of the request ─► Recording ─► channel, bounded ─► thread ─► collector, OTLP over HTTP, JSON
//! ```
//!
//! All times are known when the request has ended, so nothing has to be passed through the code while it
//! runs, and no tracing library is needed: a trace is a list that belongs to the account of the request.
//! Requests never wait for the collector: a full channel drops traces and counts them. TLS is left to a
//! collector beside the server.
//!
//! Existing exporters bring an HTTP client, protocol buffers and a feature that is not tested by default;
//! OTLP's JSON is a page of code (`wire/otlp.rs`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use actix_web::http::header::HeaderMap;
use serde_json::Value;

use crate::operate::random;
use crate::wire::otlp::{self, Span};

/// The maximum number of traces that may wait for the collector.
const WAITING: usize = 1024;
/// The number of traces that are sent together, and how long the first of them waits for others.
const TOGETHER: usize = 128;
const GATHERING: Duration = Duration::from_millis(500);
/// The timeout for the collector.
const PATIENCE: Duration = Duration::from_secs(5);

/// The trace of a request while it is being answered.
#[derive(Clone, Debug)]
pub struct Recording {
    trace: otlp::Trace,
    begun: Instant,
}

impl Recording {
    /// Begins the recording of a request that starts now, in the trace that its headers name. Returns `None`
    /// if that trace is not sampled.
    pub fn begin(headers: &HeaderMap) -> Option<Self> {
        let parent = Parent::of(headers);
        if parent.as_ref().is_some_and(|parent| !parent.sampled) {
            return None;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let id = parent.as_ref().map(|parent| parent.trace.clone());
        Some(Self {
            trace: otlp::Trace {
                root: Span {
                    name: "request",
                    sample: None,
                    from: now,
                    to: now,
                    id: random::seed().max(1),
                },
                parts: Vec::new(),
                id: id.unwrap_or_else(random::identity),
                parent: parent.map(|parent| parent.span),
            },
            begun: Instant::now(),
        })
    }

    fn nanos(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.begun).as_nanos();
        self.trace
            .root
            .from
            .saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Adds a part.
    pub fn part(&mut self, name: &'static str, sample: Option<usize>, (from, to): (Instant, Instant)) {
        self.trace.parts.push(Span {
            name,
            sample,
            from: self.nanos(from),
            to: self.nanos(to),
            id: random::seed().max(1),
        });
    }

    /// Ends the recording; `line` is the line of the request's account.
    pub fn ended(mut self, line: &Value) -> otlp::Encoded {
        self.trace.root.to = self.nanos(Instant::now());
        otlp::encoded(&self.trace, line)
    }
}

/// The contents of the `traceparent` header of W3C's Trace Context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The identity of the trace.
    pub trace: String,
    /// The identity of the client's span.
    pub span: String,
    /// `true` if the trace is recorded.
    pub sampled: bool,
}

impl Parent {
    /// Returns the parent that the headers name, if the header is valid.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut parts = headers.get("traceparent")?.to_str().ok()?.split('-');
        let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
        let hex =
            |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let all_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
        let known = hex(version, 2) && version != "ff" && hex(trace, 32) && hex(span, 16);
        let flags = parts.next().and_then(|flags| u8::from_str_radix(flags, 16).ok());
        (known && !all_zero(trace) && !all_zero(span)).then(|| Self {
            trace: trace.to_ascii_lowercase(),
            span: span.to_ascii_lowercase(),
            sampled: flags.is_some_and(|flags| flags & 1 == 1),
        })
    }
}

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    authority: String,
    path: String,
}

impl std::str::FromStr for Endpoint {
    type Err = String;

    /// Parses `http://HOST:PORT`, with or without a path.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("http://") else {
            return Err(
                "expected http://HOST:PORT; for TLS, let a collector beside the server pass on".to_owned(),
            );
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let port = authority
            .rsplit_once(':')
            .map(|(host, port)| (host.is_empty(), port.parse::<u16>()));
        let harmless = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        match port {
            Some((false, Ok(_))) if harmless(text) => Ok(Self {
                authority: authority.to_owned(),
                path: format!("/{path}").trim_end_matches('/').to_owned(),
            }),
            _ => Err("expected http://HOST:PORT".to_owned()),
        }
    }
}

/// The number of traces that were sent and dropped.
#[derive(Debug, Default)]
struct TraceCounts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

/// Sends traces to a collector, or discards them.
#[derive(Debug, Default)]
pub struct Traces {
    /// The sender; `None` after `close`.
    sender: Mutex<Option<SyncSender<otlp::Encoded>>>,
    wanted: bool,
    thread: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<TraceCounts>,
}

impl Traces {
    /// Creates traces for the collector at this address, with a thread that sends them.
    ///
    /// # Errors
    /// Fails if the thread cannot be created.
    pub fn to(endpoint: Endpoint) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING);
        let counts = Arc::<TraceCounts>::default();
        let counted = counts.clone();
        let thread = std::thread::Builder::new().name("lexiform-traces".to_owned());
        let thread = thread.spawn(move || pass_on(&receiver, &endpoint, &counted))?;
        Ok(Self {
            sender: Mutex::new(Some(sender)),
            wanted: true,
            thread: Mutex::new(Some(thread)),
            counts,
        })
    }

    /// Returns `true` if there is a collector.
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Queues a trace; never waits.
    pub fn take(&self, trace: otlp::Encoded) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let full = sender
            .as_ref()
            .is_none_or(|sender| sender.try_send(trace).is_err());
        self.counts.dropped.fetch_add(u64::from(full), Relaxed);
    }

    /// Returns how many traces were sent, and how many were not.
    pub fn counts(&self) -> (u64, u64) {
        (self.counts.sent.load(Relaxed), self.counts.dropped.load(Relaxed))
    }

    /// Stops accepting traces. Queued ones are still sent, if the collector accepts them.
    pub fn close(&self) {
        *self.sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        self.close();
    }
}

fn pass_on(traces: &Receiver<otlp::Encoded>, endpoint: &Endpoint, counts: &TraceCounts) {
    while let Ok(first) = traces.recv() {
        let begun = Instant::now();
        let mut together = vec![first];
        let mut last = false;
        while together.len() < TOGETHER && !last {
            match traces.recv_timeout(GATHERING.saturating_sub(begun.elapsed())) {
                Ok(trace) => together.push(trace),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => last = true,
            }
        }
        let count = together.len() as u64;
        match post(endpoint, &otlp::message(together)) {
            Ok(()) => counts.sent.fetch_add(count, Relaxed),
            Err(error) => {
                tracing::warn!("{count} traces were not taken by {}: {error}", endpoint.authority);
                counts.dropped.fetch_add(count, Relaxed)
            }
        };
    }
}

fn post(endpoint: &Endpoint, body: &str) -> std::io::Result<()> {
    use std::net::ToSocketAddrs as _;
    let addresses = endpoint.authority.to_socket_addrs()?.next();
    let address = addresses.ok_or_else(|| std::io::Error::other("the host has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Endpoint { authority, path } = endpoint;
    let head =
        format!("POST {path}/v1/traces HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json");
    write!(
        stream,
        "{head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut status = String::new();
    BufReader::new(std::io::Read::take(stream, 256)).read_line(&mut status)?;
    match status.split(' ').nth(1) {
        Some(code) if code.starts_with('2') => Ok(()),
        _ => Err(std::io::Error::other(format!(
            "it answered {:?}",
            status.trim_end()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::{HeaderName, HeaderValue};

    fn headers(text: &str) -> HeaderMap {
        let value = HeaderValue::from_str(text).expect("a header");
        HeaderMap::from_iter([(HeaderName::from_static("traceparent"), value)])
    }

    #[test]
    fn only_a_well_formed_parent_names_a_trace() {
        let read = |text: &str| Parent::of(&headers(text)).map(|parent| (parent.trace, parent.sampled));
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let found = |sampled| Some((trace.to_owned(), sampled));
        assert_eq!(read(&format!("00-{trace}-00f067aa0ba902b7-01")), found(true));
        assert_eq!(read(&format!("00-{trace}-00f067aa0ba902b7-00")), found(false));
        assert_eq!(
            read(&format!("cc-{trace}-00f067aa0ba902b7-01-later")),
            found(true)
        );
        let none = "0".repeat(32);
        for wrong in [
            String::new(),
            trace.to_owned(),
            format!("ff-{trace}-00f067aa0ba902b7-01"),
            format!("00-{none}-00f067aa0ba902b7-01"),
            format!("00-{trace}-{}-01", &none[..16]),
            format!("00-{}-00f067aa0ba902b7-01", &trace[1..]),
            format!("00-{trace}-00f0\"67aa0ba902b7-01"),
            format!("00-{trace}"),
        ] {
            assert_eq!(read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_trace_that_its_client_does_not_keep_is_not_kept_here() {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
        assert!(Recording::begin(&headers(&format!("{trace}-00"))).is_none());
        let kept = Recording::begin(&headers(&format!("{trace}-01"))).expect("a trace");
        assert_eq!(kept.trace.parent.as_deref(), Some("00f067aa0ba902b7"));
        let own = Recording::begin(&HeaderMap::new()).expect("a trace");
        assert!(own.trace.parent.is_none() && own.trace.id.len() == 32);
    }

    #[test]
    fn an_endpoint_has_a_host_and_a_port() {
        let read = |text: &str| {
            text.parse::<Endpoint>()
                .ok()
                .map(|endpoint| (endpoint.authority, endpoint.path))
        };
        assert_eq!(
            read("http://127.0.0.1:4318"),
            Some(("127.0.0.1:4318".to_owned(), String::new()))
        );
        assert_eq!(
            read("http://c:1/otlp/"),
            Some(("c:1".to_owned(), "/otlp".to_owned()))
        );
        for wrong in [
            "",
            "c:1",
            "https://c:1",
            "http://c",
            "http://:1",
            "http://c:x",
            "http://c:1/\r\nx: y",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
