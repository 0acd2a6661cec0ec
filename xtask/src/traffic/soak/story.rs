//! What is done to the service while clients stream, and what is looked at meanwhile and afterwards.

use super::place::{DRAIN, LOADED, Place, STEADY, SWAPPED};
use super::suspect::{Deed, Span, Suspects};
use crate::process::Failure;
use crate::traffic::driver::chat;
use crate::traffic::http::{Answer, CHAT, exchange, head, with_key};
use crate::traffic::service::{Program, Service};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(250);
/// The time that the service may take to do what it was told.
const SOON: Duration = Duration::from_secs(10);
/// The number of times that the swapped models change places.
const SWAPS: u32 = 30;

/// The gauges that are zero in a service without requests.
const GAUGES: [&str; 5] = [
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "lexiform_grammar_compiles_running",
    "lexiform_body_bytes",
    "lexiform_bodies_unfinished",
];
/// The counters that are always zero.
const COUNTERS: [&str; 4] = [
    "lexiform_panics_total",
    "lexiform_engine_panics_total",
    "lexiform_invalid_output_total",
    "lexiform_log_lines_dropped_total",
];

/// What was seen when all was over.
#[derive(Default)]
pub(super) struct Ended {
    /// The number of times that each thing was done.
    pub(super) actions: BTreeMap<String, usize>,
    pub(super) problems: Vec<String>,
    /// The resident memory of the last process, in bytes: a fifth of the time after its start, at the end
    /// without requests, and the most.
    pub(super) memory_early: u64,
    pub(super) memory_at_end: u64,
    pub(super) memory_most: u64,
}

/// The service, and what happens to it.
pub(super) struct Story<'a> {
    program: &'a Program,
    place: &'a Place,
    suspects: &'a Suspects,
    service: Service,
    fashion: Arc<AtomicUsize>,
    time: Duration,
    /// The time after which the answer to an operator is given up.
    patience: Duration,
    ended: Ended,
}

/// What is done at its part of the time.
type Step<'a> = (f64, fn(&mut Story<'a>) -> Result<(), Failure>);

impl<'a> Story<'a> {
    /// Starts the service.
    pub(super) fn begin(
        program: &'a Program,
        place: &'a Place,
        suspects: &'a Suspects,
        time: Duration,
    ) -> Result<Self, Failure> {
        Ok(Self {
            service: program.start()?,
            program,
            place,
            suspects,
            fashion: Arc::default(),
            time,
            patience: SOON,
            ended: Ended::default(),
        })
    }

    /// Returns the place of the swapped model that clients use.
    pub(super) fn fashion(&self) -> Arc<AtomicUsize> {
        self.fashion.clone()
    }

    /// Does everything at its time.
    pub(super) fn tell(&mut self) -> Result<(), Failure> {
        let steps: [Step<'a>; 4] = [
            (0.1, Self::kill),
            (0.2, Self::drain),
            (0.4, Self::remember),
            (0.5, Self::reload),
        ];
        let mut steps = steps.into_iter().peekable();
        let (mut begun, mut swaps) = (Instant::now(), 0);
        while begun.elapsed() < self.time {
            if let Some((_, step)) = steps.next_if(|(part, _)| begun.elapsed() >= self.time.mul_f64(*part)) {
                let before = Instant::now();
                step(self)?;
                // The last process is to live as long as it is meant to, however long a start takes.
                begun += before.elapsed();
            }
            if begun.elapsed() >= self.time * (swaps + 1) / SWAPS {
                swaps += 1;
                self.swap();
            }
            self.look()?;
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Looks at the service without requests, and ends it.
    pub(super) fn end(mut self) -> Result<Ended, Failure> {
        let begun = Instant::now();
        let rest = loop {
            let metrics = self.page("/metrics")?;
            let rest: Vec<_> = GAUGES
                .into_iter()
                .filter(|name| sum(&metrics, name) != 0.0)
                .collect();
            if rest.is_empty() || begun.elapsed() > SOON {
                break rest;
            }
            std::thread::sleep(LOOK);
        };
        for name in rest {
            self.ended
                .problems
                .push(format!("{name} does not return to zero"));
        }
        let metrics = self.page("/metrics")?;
        for name in COUNTERS.into_iter().filter(|name| sum(&metrics, name) != 0.0) {
            self.ended.problems.push(format!("{name} is not zero"));
        }
        // Loads that were begun for clients may still be under way.
        self.patience = DRAIN;
        self.swap_idly();
        self.ended.memory_at_end = self.service.memory();
        self.ended.memory_most = self.service.take_peak();
        self.service.signal("-TERM")?;
        self.check_end();
        Ok(self.ended)
    }

    fn kill(&mut self) -> Result<(), Failure> {
        let from = Instant::now();
        self.service.signal("-KILL")?;
        let _ = self.service.ended_within(SOON);
        self.start_again(from, Deed::Killed)
    }

    fn drain(&mut self) -> Result<(), Failure> {
        let from = Instant::now();
        self.service.signal("-TERM")?;
        self.check_end();
        self.start_again(from, Deed::Drained)
    }

    fn start_again(&mut self, from: Instant, deed: Deed) -> Result<(), Failure> {
        self.service = self.program.start()?;
        let until = Instant::now();
        self.suspects.explain(Span { from, until }, deed);
        self.did(&format!(
            "{deed:?}, and ready again after {:.1} s",
            (until - from).as_secs_f64()
        ));
        Ok(())
    }

    /// Checks that the process ends by itself, and well.
    fn check_end(&mut self) {
        match self.service.ended_within(DRAIN + SOON) {
            Some(status) if status.success() => {}
            Some(status) => self
                .ended
                .problems
                .push(format!("the service ended with {status}")),
            None => self
                .ended
                .problems
                .push(format!("the service does not end within {DRAIN:?}")),
        }
    }

    fn remember(&mut self) -> Result<(), Failure> {
        self.ended.memory_early = self.service.memory();
        Ok(())
    }

    /// Has the service read its keys and open its audit log again.
    fn reload(&mut self) -> Result<(), Failure> {
        let (audit, late) = (self.place.audit(), self.place.late());
        let body = chat(STEADY, 1, json!({"guided_choice": ["yes", "no"]})).to_string();
        if self.post(&late, CHAT, &body).status != 401 {
            self.ended
                .problems
                .push("a key that is not there was taken".to_owned());
        }
        self.place.admit_late()?;
        let moved = audit.with_extension("old");
        std::fs::rename(&audit, &moved).map_err(|error| Failure::io("could not rename", &audit, &error))?;
        self.service.signal("-HUP")?;
        let begun = Instant::now();
        while begun.elapsed() < SOON {
            let has_lines = std::fs::metadata(&audit).is_ok_and(|file| file.len() > 0);
            if has_lines && self.post(&late, CHAT, &body).status == 200 {
                self.did("reloaded");
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        self.ended
            .problems
            .push("the files were not read again".to_owned());
        Ok(())
    }

    /// Has clients use the other swapped model, and an operator unload the one and load the other.
    fn swap(&mut self) {
        let old = self.fashion.fetch_xor(1, Relaxed);
        for (model, what) in [(SWAPPED[old], "unload"), (SWAPPED[1 - old], "load")] {
            let answer = self.operate(model, what);
            let told = match answer.status {
                200 => answer.json()["state"].as_str().unwrap_or_default().to_owned(),
                0 => "given up".to_owned(),
                _ => answer.code(),
            };
            self.did(&format!("{what} by an operator: {told}"));
            if ![
                "loading",
                "loaded",
                "unloaded",
                "unloading",
                "given up",
                "model_loading",
                "no_room_for_model",
            ]
            .contains(&told.as_str())
            {
                self.ended
                    .problems
                    .push(format!("{what}: {}: {}", answer.status, answer.body));
            }
        }
    }

    /// The same without requests, where both must come to their ends.
    fn swap_idly(&mut self) {
        let old = self.fashion.load(Relaxed);
        for (model, what, expected) in [
            (SWAPPED[old], "unload", "unloaded"),
            (SWAPPED[1 - old], "load", "loaded"),
            (SWAPPED[1 - old], "unload", "unloaded"),
            (SWAPPED[old], "load", "loaded"),
        ] {
            let answer = self.operate(model, what);
            if answer.json()["state"] != expected {
                let problem = format!("{what} without requests: {}: {}", answer.status, answer.body);
                self.ended.problems.push(problem);
            }
        }
    }

    /// Looks whether the service lives, and how many models are in memory.
    fn look(&mut self) -> Result<(), Failure> {
        if let Some(end) = self.service.end() {
            return Err(Failure::new(format!("the service {end}")));
        }
        let models = self.get("/v1/models").json();
        let states = models["data"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|card| &card["state"]);
        let loaded = states
            .filter(|state| *state == "loaded" || *state == "unloading")
            .count();
        if loaded > LOADED {
            self.ended.problems.push(format!("{loaded} models are in memory"));
        }
        Ok(())
    }

    fn operate(&self, model: &str, what: &str) -> Answer {
        self.post(&self.place.operator(), &format!("/v1/models/{model}/{what}"), "")
    }

    fn post(&self, key: &str, path: &str, body: &str) -> Answer {
        let request = with_key(key, &head(path, body.len(), "close")) + body;
        exchange(&self.service.address, &request, |answer| {
            answer.time < self.patience
        })
    }

    fn get(&self, path: &str) -> Answer {
        let head = format!("GET {path} HTTP/1.1\r\nhost: xtask\r\nconnection: close\r\n\r\n");
        let request = with_key(&self.place.operator(), &head);
        exchange(&self.service.address, &request, |answer| answer.time < SOON)
    }

    fn page(&self, path: &str) -> Result<String, Failure> {
        let answer = self.get(path);
        match answer.status {
            200 => Ok(answer.body),
            status => Err(Failure::new(format!("{path}: status {status}"))),
        }
    }

    fn did(&mut self, action: &str) {
        *self.ended.actions.entry(action.to_owned()).or_default() += 1;
    }
}

/// Returns the sum of a metric over all its labels.
fn sum(metrics: &str, name: &str) -> f64 {
    let of = |line: &str| {
        let rest = line
            .strip_prefix(name)
            .filter(|rest| rest.starts_with(['{', ' ']))?;
        rest.rsplit(' ').next()?.parse::<f64>().ok()
    };
    metrics.lines().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_summed_over_its_labels() {
        let metrics =
            "# TYPE a gauge\na{model_name=\"x\"} 2\na{model_name=\"y\"} 3\nab{model_name=\"x\"} 7\nc 4\n";
        assert_eq!(["a", "b", "c"].map(|name| sum(metrics, name)), [5.0, 0.0, 4.0]);
    }
}
