//! Traces: how a request spent its time, exported to a collector over OpenTelemetry's protocol.
//!
//! ```text
//!   POST /v1/chat/completions ─────────────────────────────────────────┐
//!   ├ template ─┤ compile ─┤ queue ─┤ prefill ─┤ decode ──────┤ finish ┤
//!   account of the request ─► Recording ─► channel, bounded ─► thread ─► collector (`otlp.rs`)
//! ```
//!
//! All times are known when the request has ended, so nothing has to be passed through the code while it
//! runs: a trace is a list that belongs to the account of the request.
//! Requests never wait for the collector: a full channel drops traces and counts them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix_web::http::header::HeaderMap;
use opentelemetry::trace::{SpanContext, TraceFlags, TraceState};
use opentelemetry::{SpanId, TraceId};
use serde_json::Value;

use crate::operate::otlp::worker::{End, Worker};
use crate::operate::otlp::{Collector, Sampling};
use crate::operate::random;
use crate::wire::otlp::{self, Service, Span};

/// The maximum number of traces that may wait for the collector.
const WAITING: usize = 1024;
/// The number of traces that are sent together, and how long the first of them waits for others.
const TOGETHER: usize = 128;
const GATHERING: Duration = Duration::from_millis(500);

/// The trace of a request while it is being answered.
#[derive(Clone, Debug)]
pub struct Recording {
    trace: otlp::Trace,
    begun: Instant,
}

impl Recording {
    /// Begins the recording of a request that starts now, in the trace that its headers name. Returns `None`
    /// if the trace is not sampled.
    fn begin(headers: &HeaderMap, sampling: &Sampling) -> Option<Self> {
        let parent = Parent::of(headers);
        let id = match &parent {
            Some(parent) => parent.trace,
            None => TraceId::from_hex(&random::identity()).ok()?,
        };
        if !sampling.keeps(id, parent.as_ref().map(Parent::context)) {
            return None;
        }
        let now = random::nanoseconds();
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
                id,
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
    pub trace: TraceId,
    /// The identity of the client's span.
    pub span: SpanId,
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
        if !hex(version, 2) || version == "ff" || !hex(trace, 32) || !hex(span, 16) {
            return None;
        }
        let flags = parts.next().and_then(|flags| u8::from_str_radix(flags, 16).ok());
        let parent = Self {
            trace: TraceId::from_hex(trace).ok()?,
            span: SpanId::from_hex(span).ok()?,
            sampled: flags.is_some_and(|flags| flags & 1 == 1),
        };
        parent.context().is_valid().then_some(parent)
    }

    fn context(&self) -> SpanContext {
        let flags = if self.sampled {
            TraceFlags::SAMPLED
        } else {
            TraceFlags::default()
        };
        SpanContext::new(self.trace, self.span, flags, true, TraceState::NONE)
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
    /// Which requests are traced; `None` if there is no collector.
    sampling: Option<Sampling>,
    worker: Option<Worker>,
    counts: Arc<TraceCounts>,
}

impl Traces {
    /// Creates traces for this collector, with a thread that sends them.
    ///
    /// # Errors
    /// Fails if the thread cannot be created.
    pub fn to((collector, sampling): (Collector, Sampling), service: Service) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING);
        let counts = Arc::<TraceCounts>::default();
        let counted = counts.clone();
        let worker = Worker::start("lexiform-traces", move |end| {
            pass_on(&receiver, (&collector, &service), &counted, end);
        });
        Ok(Self {
            sender: Mutex::new(Some(sender)),
            sampling: Some(sampling),
            worker: Some(worker?),
            counts,
        })
    }

    /// Begins the recording of a request that starts now, if it is to be traced.
    pub fn begin(&self, headers: &HeaderMap) -> Option<Recording> {
        Recording::begin(headers, self.sampling.as_ref()?)
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

    /// Stops accepting traces. Queued ones are still sent, if the collector takes them in time.
    pub fn close(&self) {
        let end = || *self.sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
        match &self.worker {
            Some(worker) => worker.finish(end),
            None => end(),
        }
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        self.close();
    }
}

fn pass_on(
    traces: &Receiver<otlp::Encoded>,
    (collector, service): (&Collector, &Service),
    counts: &TraceCounts,
    end: &End,
) {
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
        let message = otlp::message(service, together);
        match collector.send(&message, end.within(collector.timeout())) {
            Ok(()) => counts.sent.fetch_add(count, Relaxed),
            Err(error) => {
                tracing::warn!("{count} traces were not taken by {}: {error}", collector.url());
                counts.dropped.fetch_add(count, Relaxed)
            }
        };
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
        let read =
            |text: &str| Parent::of(&headers(text)).map(|parent| (parent.trace.to_string(), parent.sampled));
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
        let begin = |headers: &HeaderMap| Recording::begin(headers, &Sampling::default());
        assert!(begin(&headers(&format!("{trace}-00"))).is_none());
        let kept = begin(&headers(&format!("{trace}-01"))).expect("a trace");
        let parent = kept.trace.parent.map(|span| span.to_string());
        assert_eq!(parent.as_deref(), Some("00f067aa0ba902b7"));
        let own = begin(&HeaderMap::new()).expect("a trace");
        assert!(own.trace.parent.is_none() && own.trace.id != TraceId::INVALID);
    }
}
