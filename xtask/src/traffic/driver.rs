//! The driver of all traffic: clients on threads that take turns until the command has seen enough.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The clients of a command, and the numbers of their turns.
pub(super) struct Clients {
    pub(super) count: usize,
    /// The number of the first turn of the first client; that of the next client is one more.
    pub(super) first: usize,
    /// The distance between the turns of one client, or `None` if each takes one turn.
    pub(super) step: Option<usize>,
}

impl Clients {
    /// Starts all clients at the same moment, and runs `meanwhile` beside them. Each takes turns until that
    /// has returned; `turn` receives the number of the turn, whether the time is over, and the record of the
    /// client.
    pub(super) fn drive<T>(
        &self,
        turn: impl Fn(usize, &AtomicBool, &mut Seen) + Sync,
        meanwhile: impl FnOnce() -> T,
    ) -> (Seen, T) {
        let (over, barrier, turn) = (&AtomicBool::new(false), &Barrier::new(self.count), &turn);
        let client = |number: usize| {
            move || {
                let (mut seen, mut number) = (Seen::default(), self.first + number);
                barrier.wait();
                loop {
                    turn(number, over, &mut seen);
                    match self.step {
                        Some(step) if !over.load(Relaxed) => number += step,
                        _ => return seen,
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.count)
                .map(|number| scope.spawn(client(number)))
                .collect();
            let result = meanwhile();
            over.store(true, Relaxed);
            let mut all = Seen::default();
            for client in clients {
                match client.join() {
                    Ok(seen) => all.add(seen),
                    Err(_) => all.wrong.push("a client panicked".to_owned()),
                }
            }
            (all, result)
        })
    }
}

/// The record of one client, or of many.
#[derive(Default)]
pub(super) struct Seen {
    /// The number of answers of each kind.
    pub(super) outcomes: BTreeMap<String, usize>,
    /// The reasons why answers were wrong.
    pub(super) wrong: Vec<String>,
    times: BTreeMap<&'static str, Vec<Duration>>,
}

impl Seen {
    pub(super) fn count(&mut self, outcome: impl Into<String>) {
        *self.outcomes.entry(outcome.into()).or_default() += 1;
    }

    pub(super) fn time(&mut self, of: &'static str, time: Duration) {
        self.times.entry(of).or_default().push(time);
    }

    pub(super) fn add(&mut self, other: Seen) {
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        for (of, times) in other.times {
            self.times.entry(of).or_default().extend(times);
        }
        self.wrong.extend(other.wrong);
    }

    /// Returns the number of times of this name.
    pub(super) fn number_of(&self, of: &str) -> usize {
        self.times.get(of).map_or(0, Vec::len)
    }

    /// Returns the percentile of the times of this name, by the nearest rank.
    pub(super) fn at(&self, of: &str, share: f64) -> Option<Duration> {
        let mut times = self.times.get(of)?.clone();
        times.sort_unstable();
        let rank = (times.len() as f64 * share).ceil() as usize;
        times.get(rank.max(1) - 1).copied()
    }

    /// Prints percentiles of the times of this name, in seconds.
    pub(super) fn print(&self, of: &str, shares: &[(&str, f64)]) {
        let seconds = |share: f64| self.at(of, share).unwrap_or_default().as_secs_f64();
        let shares = shares
            .iter()
            .map(|(name, share)| format!("{name} {:.3} s", seconds(*share)));
        println!("{of}: {}", shares.collect::<Vec<_>>().join(", "));
    }

    /// Prints the first reasons of wrong answers.
    pub(super) fn print_wrong(&self) {
        for wrong in self.wrong.iter().take(5) {
            println!("wrong: {wrong}");
        }
    }
}

/// Returns a request for a short text. `more` adds fields, or replaces them.
pub(super) fn chat(model: &str, seed: usize, more: Value) -> Value {
    let content = format!("Person {seed} is {} years old.", seed % 90);
    let body =
        json!({"model": model, "max_tokens": 64, "temperature": 1, "seed": seed, "messages": said(&content)});
    extended(body, more)
}

/// Returns the messages of a conversation in which this was said.
pub(super) fn said(content: &str) -> Value {
    json!([{"role": "user", "content": content}])
}

/// Returns an object with the fields of another one.
pub(super) fn extended(mut body: Value, more: Value) -> Value {
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_takes_its_turns() {
        let turns = |step, time| {
            let clients = Clients {
                count: 3,
                first: 10,
                step,
            };
            let turn = |number: usize, _: &AtomicBool, seen: &mut Seen| {
                seen.count(number.to_string());
                std::thread::sleep(Duration::from_millis(1));
            };
            clients
                .drive(turn, || std::thread::sleep(Duration::from_millis(time)))
                .0
                .outcomes
        };
        let once = ["10", "11", "12"].map(|number| (number.to_owned(), 1));
        assert_eq!(turns(None, 20), once.clone().into());
        let many = turns(Some(3), 20);
        assert!(
            many.len() > 3 && many.values().all(|count| *count == 1),
            "{many:?}"
        );
    }

    #[test]
    fn percentiles_are_of_one_name() {
        let mut seen = Seen::default();
        for second in 1..=20 {
            seen.time(["even", "odd"][second % 2], Duration::from_secs(second as u64));
        }
        let at = |of, share| seen.at(of, share).map(|time| time.as_secs());
        assert_eq!(
            [0.5, 0.95, 1.0].map(|share| at("even", share)),
            [Some(10), Some(20), Some(20)]
        );
        assert_eq!(
            [0.5, 0.95, 1.0].map(|share| at("odd", share)),
            [Some(9), Some(19), Some(19)]
        );
        assert_eq!(
            (at("none", 0.5), seen.number_of("odd"), seen.number_of("none")),
            (None, 10, 0)
        );
    }
}
