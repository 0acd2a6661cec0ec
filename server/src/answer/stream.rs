//! The body of a streamed answer: server-sent events, one frame for each piece of news.
//!
//! The body owns the running samples. When the client disconnects, actix drops the body, and with it the
//! sequences in the engine. While there is nothing to send (the request is queued, the grammar compiles, the
//! global law still tries) a comment line is sent every few seconds, so that proxies keep the connection
//! open.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::web::Bytes;
use futures_core::Stream;
use tokio::time::{Interval, MissedTickBehavior};

use crate::answer::builder::AnswerBuilder;
use crate::model::running::Running;
use crate::wire::error::ApiError;

/// The maximum time that a stream may be silent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The number of bytes after which gathered frames are sent.
const GATHERED: usize = 16 * 1024;

/// A streamed answer.
pub struct EventStream {
    frame: AnswerBuilder,
    running: Running,
    keep_alive: Interval,
    phase: StreamPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamPhase {
    Opening,
    Writing,
    Closed,
}

impl EventStream {
    /// Creates the stream of this answer. Must be called inside the runtime.
    pub fn new(frame: AnswerBuilder, running: Running) -> Self {
        let mut keep_alive = tokio::time::interval_at(tokio::time::Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            frame,
            running,
            keep_alive,
            phase: StreamPhase::Opening,
        }
    }

    /// Ends the stream with an error and writes its frames.
    pub fn fail(&mut self, error: &ApiError, write: &mut dyn FnMut(&[u8])) {
        let mut out = String::new();
        self.frame.failed(error, &mut out);
        self.phase = StreamPhase::Closed;
        write(out.as_bytes());
    }

    /// Takes the available events and writes their frames.
    fn gather(&mut self, context: &mut Context<'_>, out: &mut String) {
        while out.len() < GATHERED && self.phase == StreamPhase::Writing {
            let taken = match self.running.poll_next(context) {
                Poll::Pending => return,
                Poll::Ready(Err(error)) => Err(error),
                Poll::Ready(Ok((index, event))) => self.frame.event(index, event, &mut self.running, out),
            };
            if let Err(error) = taken {
                self.frame.failed(&error, out);
                self.phase = StreamPhase::Closed;
            } else if self.frame.complete() {
                self.frame.closing(out);
                self.phase = StreamPhase::Closed;
            }
        }
    }
}

impl Stream for EventStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut out = String::new();
        if this.phase == StreamPhase::Opening {
            this.frame.opening(&mut out);
            this.phase = StreamPhase::Writing;
        }
        let closed_before = this.phase == StreamPhase::Closed;
        this.gather(context, &mut out);
        if !out.is_empty() {
            this.keep_alive.reset();
            return Poll::Ready(Some(Ok(Bytes::from(out))));
        }
        if closed_before {
            return Poll::Ready(None);
        }
        if this.keep_alive.poll_tick(context).is_ready() {
            // The timer must be armed again before this task sleeps.
            context.waker().wake_by_ref();
            return Poll::Ready(Some(Ok(Bytes::from_static(b": keep-alive\n\n"))));
        }
        Poll::Pending
    }
}
