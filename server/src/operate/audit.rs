//! The account of a request: who sent it, its outcome, and its cost. The audit log has one line of JSON for
//! each, without prompts, answers or keys.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::operate::keys::Permit;
use crate::operate::lines::{Lines, Target};
use crate::operate::traces::{Recording, Traces};
use crate::wire::error::{ApiError, shortened};
use crate::wire::response::Usage;

/// The verdict on a request that was answered successfully.
pub const ANSWERED: &str = "answered";
/// The verdict on a request whose client disconnected.
const CANCELLED: &str = "cancelled";
/// The phase in which a client disconnected, if it was later than preparation.
pub const PHASE: &str = "phase";

/// The audit log.
#[derive(Debug, Default)]
pub struct Audit {
    to: Option<(PathBuf, Lines)>,
}

impl Audit {
    /// Opens a log that appends to a file, or to a named pipe, which may have no reader yet.
    ///
    /// # Errors
    /// Fails if the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let told = |error: &io::Error| tracing::error!("the audit log cannot be written: {error}");
        let lines = Lines::to(Target::append(path)?, told)?;
        Ok(Self {
            to: Some((path.to_owned(), lines)),
        })
    }

    /// Opens the file of this name again, and returns `true` if there is one: a program that rotates logs has
    /// given the old file another name.
    ///
    /// # Errors
    /// Fails like [`open`](Self::open); the previous file is kept.
    pub fn open_again(&self) -> io::Result<bool> {
        let Some((path, lines)) = &self.to else {
            return Ok(false);
        };
        lines.continue_in(Target::append(path)?);
        Ok(true)
    }

    /// Returns the number of lines that could not be written.
    pub fn lost(&self) -> u64 {
        self.to.as_ref().map_or(0, |(_, lines)| lines.lost())
    }

    /// Waits until the lines so far are written.
    pub fn flush(&self) {
        if let Some((_, lines)) = &self.to {
            lines.flush();
        }
    }

    /// Writes the line of a request that was refused before it had an account: its key is unknown, or has
    /// reached a limit.
    pub fn refused(&self, asked: &Asked<'_>, key: Option<&str>, code: &'static str) {
        let mut line = asked.line(key);
        close(&mut line, code, Usage::default(), Duration::ZERO);
        self.write(&line);
    }

    fn write(&self, line: &Value) {
        if let Some((_, lines)) = &self.to {
            lines.line(&line.to_string());
        }
    }
}

/// What the audit log says of every request.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The id of the request.
    pub id: &'a str,
    /// Its path.
    pub path: &'a str,
    /// The address of its client.
    pub client: &'a str,
}

impl Asked<'_> {
    fn line(&self, key: Option<&str>) -> Value {
        json!({
            "time": crate::operate::random::now(), "request": self.id, "key": key, "client": self.client,
            "path": shortened(self.path)
        })
    }
}

/// Adds how the request ended to its line.
fn close(line: &mut Value, verdict: &str, usage: Usage, time: Duration) {
    line["verdict"] = verdict.into();
    line["prompt_tokens"] = usage.prompt_tokens.into();
    line["completion_tokens"] = usage.completion_tokens.into();
    line["milliseconds"] = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into();
}

/// The number of requests that are being answered, including streams.
#[derive(Debug, Default)]
pub struct InFlight(AtomicUsize);

impl InFlight {
    /// Returns the number of requests.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// The account of one request. It is closed when this value is dropped: with the answer, or when the client
/// disconnects.
#[derive(Debug)]
pub struct Account {
    audit: Arc<Audit>,
    in_flight: Arc<InFlight>,
    permit: Option<Permit>,
    begun: Instant,
    line: Value,
    usage: Usage,
    verdict: &'static str,
    trace: Option<(Arc<Traces>, Recording)>,
}

impl Account {
    /// Opens an account.
    pub fn open(
        audit: Arc<Audit>,
        in_flight: Arc<InFlight>,
        permit: Option<Permit>,
        asked: &Asked<'_>,
    ) -> Self {
        in_flight.0.fetch_add(1, Ordering::AcqRel);
        let line = asked.line(permit.as_ref().map(|permit| permit.key().name.as_str()));
        Self {
            audit,
            in_flight,
            permit,
            begun: Instant::now(),
            line,
            usage: Usage::default(),
            verdict: CANCELLED,
            trace: None,
        }
    }

    /// Adds the recording of a trace, if the request has one.
    #[must_use]
    pub fn traced(mut self, traces: Arc<Traces>, trace: Option<Recording>) -> Self {
        self.trace = trace.map(|trace| (traces, trace));
        self
    }

    /// Records the time that a part of the request, or of a sample of it, took.
    pub fn spent(&mut self, name: &'static str, sample: Option<usize>, time: (Instant, Instant)) {
        if let Some((_, trace)) = &mut self.trace {
            trace.part(name, sample, time);
        }
    }

    /// Adds a field to the line of the request.
    pub fn note(&mut self, name: &str, value: impl Into<Value>) {
        self.line[name] = value.into();
    }

    /// Records how a request ended that is answered in one piece.
    pub fn settle(&mut self, answered: Result<Usage, &ApiError>) {
        match answered {
            Ok(usage) => self.end(ANSWERED, usage),
            Err(error) => self.end(error.code(), Usage::default()),
        }
    }

    /// Records how the request ended.
    pub fn end(&mut self, verdict: &'static str, usage: Usage) {
        self.verdict = verdict;
        self.usage = usage;
    }

    /// Records the tokens used so far.
    pub fn used(&mut self, usage: Usage) {
        self.usage = usage;
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.in_flight.0.fetch_sub(1, Ordering::AcqRel);
        if let Some(permit) = &self.permit {
            permit.key().spend(self.usage.total_tokens);
        }
        if self.verdict == CANCELLED && self.line.get(PHASE).is_none() {
            self.note(PHASE, "prepare");
        }
        close(&mut self.line, self.verdict, self.usage, self.begun.elapsed());
        self.audit.write(&self.line);
        if let Some((traces, trace)) = self.trace.take() {
            traces.take(trace.ended(&self.line));
        }
    }
}
