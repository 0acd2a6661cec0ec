//! Metrics that are sent to a collector from time to time.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::collector::Collector;
use super::worker::{End, Worker};
use crate::operate::random::nanoseconds;
use crate::wire::otlp::metrics::{self, Span};
use crate::wire::otlp::{Outgoing, Service};

/// Sends metrics until it is closed.
#[derive(Debug)]
pub struct Metrics {
    worker: Worker,
    /// The thread ends when this is dropped.
    running: Mutex<Option<SyncSender<()>>>,
}

impl Metrics {
    /// Starts a thread that sends what the function returns, the exposition of all metrics, at these
    /// intervals.
    ///
    /// # Errors
    /// Fails if the operating system has no thread left.
    pub fn start(
        (collector, every): (Collector, Duration),
        service: Service,
        exposition: impl Fn() -> String + Send + 'static,
    ) -> std::io::Result<Self> {
        let (running, stop) = sync_channel(0);
        let from = nanoseconds();
        let worker = Worker::start("lexiform-metrics", move |end| {
            send_each(&stop, every, || {
                let time = Span {
                    from,
                    to: nanoseconds(),
                };
                send(&collector, &metrics::message(&service, &exposition(), time), end);
            });
        })?;
        Ok(Self {
            worker,
            running: Mutex::new(Some(running)),
        })
    }

    /// Sends the metrics a last time, if the collector takes them in time.
    pub fn close(&self) {
        self.worker.finish(|| {
            *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        });
    }
}

/// Sends at intervals, and once more at the end.
fn send_each(stop: &Receiver<()>, every: Duration, send: impl Fn()) {
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(every) {
        send();
    }
    send();
}

fn send(collector: &Collector, message: &impl Outgoing, end: &End) {
    if let Err(error) = collector.send(message, end.within(collector.timeout())) {
        tracing::warn!("metrics were not taken by {}: {error}", collector.url());
    }
}
