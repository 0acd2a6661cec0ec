//! A client of small requests, which measures how long it waits.

use super::http;
use super::service::Service;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(20);
/// The time after which it stops waiting for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The client, which sends requests until it is stopped.
pub(crate) struct Light {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<Waits>,
}

/// The time of each of its requests, and the number without a good answer.
#[derive(Default)]
pub(crate) struct Waits {
    times: Vec<Duration>,
    pub(crate) wrong: usize,
}

impl Light {
    pub(crate) fn start(service: &Service) -> Light {
        let stopped = Arc::new(AtomicBool::new(false));
        let (address, model, until) = (service.address, service.model.clone(), stopped.clone());
        let thread = std::thread::spawn(move || ask_on(address, &model, &until));
        Light { stopped, thread }
    }

    pub(crate) fn stop(self) -> Waits {
        self.stopped.store(true, Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn ask_on(address: SocketAddr, model: &str, stopped: &AtomicBool) -> Waits {
    let mut waits = Waits::default();
    let body = json!({"model": model, "max_tokens": 4, "temperature": 0, "guided_choice": ["yes", "no"],
        "messages": [{"role": "user", "content": "Is water wet?"}]});
    let body = body.to_string();
    while !stopped.load(Relaxed) {
        let answer = http::post(address, "/v1/chat/completions", &body, PATIENCE);
        waits.wrong += usize::from(answer.status != 200);
        waits.times.push(answer.time);
        std::thread::sleep(PAUSE);
    }
    waits
}

impl Waits {
    /// Returns the wait that one request in a hundred exceeds.
    pub(crate) fn p99(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let last = times.len().saturating_sub(1);
        times
            .get(last.min(times.len() * 99 / 100))
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wait_in_a_hundred_is_left_out() {
        let waits = |count: u64| Waits {
            times: (1..=count).map(Duration::from_millis).collect(),
            wrong: 0,
        };
        assert_eq!(waits(200).p99(), Duration::from_millis(199));
        assert_eq!(waits(3).p99(), Duration::from_millis(3));
        assert_eq!(waits(0).p99(), Duration::ZERO);
    }
}
