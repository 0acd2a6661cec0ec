//! `cargo xtask crowd`: clients that all request several texts at the same time, half of them by particles
//! and half by beams. Every text is checked.

use super::load;
use crate::process::Failure;
use serde_json::{Value, json};
use std::io::BufReader;
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const USAGE: &str = "\
Usage: cargo xtask crowd [--address HOST:PORT] [--clients N] [--rounds N] [--pid PID]

  So many clients (64) ask a running service (by default 127.0.0.1:8000) at the same moment for eight texts each, by
  law: smc with eight particles and by search: beam of width 8, and do so again when all are answered, so many times (5).
  With --pid, the memory of that process is read after each round. Fails where an answer is refused or does not obey.";

/// The number of texts of a request.
const TEXTS: usize = 8;

struct CrowdPlan {
    address: String,
    clients: usize,
    rounds: usize,
    pid: Option<u32>,
}

/// The method by which the texts are generated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AskedWay {
    Particles,
    Beam,
}

impl AskedWay {
    fn of(client: usize) -> Self {
        match client % 2 {
            0 => AskedWay::Particles,
            _ => AskedWay::Beam,
        }
    }

    fn body(self, model: &str, seed: usize) -> (Value, fn(&str) -> bool) {
        // Of the four kinds of constraints, only those with at least eight texts.
        let (mut body, obeys) = load::constraint(seed / 6 * 4 + seed / 2 % 3);
        body["model"] = json!(model);
        body["max_tokens"] = json!(64);
        body["n"] = json!(TEXTS);
        body["seed"] = json!(seed);
        let content = format!("Person {seed} is {} years old.", seed % 90);
        body["messages"] = json!([{"role": "user", "content": content}]);
        match self {
            AskedWay::Particles => {
                body["law"] = json!("smc");
                body["particles"] = json!(TEXTS);
                body["temperature"] = json!(1);
            }
            AskedWay::Beam => body["search"] = json!({"kind": "beam", "width": TEXTS}),
        }
        (body, obeys)
    }
}

/// Returns a request for eight texts, by particles or by beams.
pub(crate) fn body(model: &str, seed: usize) -> Value {
    AskedWay::of(seed).body(model, seed).0
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(plan) = plan(args)? else {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    let model = load::model(&plan.address)?;
    let (mut times, mut wrong) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        let begun = Instant::now();
        for (way, answered) in at_once(&plan, &model, round) {
            match answered {
                Ok(time) => times.push((way, time)),
                Err(why) => wrong.push(why),
            }
        }
        let took = begun.elapsed().as_secs_f64();
        let memory = plan.pid.and_then(load::memory);
        let memory = memory.map_or_else(String::new, |kib| format!(", {kib} KiB of memory"));
        println!("round {round}: {} clients in {took:.2} s{memory}", plan.clients);
    }
    for (way, name) in [(AskedWay::Particles, "smc"), (AskedWay::Beam, "beam")] {
        println!("{name}: {}", told(&times, way));
    }
    for why in wrong.iter().take(5) {
        println!("wrong: {why}");
    }
    println!("{} answers, {} wrong", times.len(), wrong.len());
    Ok(match wrong.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Formats the percentiles of one method, by the nearest rank.
fn told(times: &[(AskedWay, Duration)], way: AskedWay) -> String {
    let own = times.iter().filter(|(other, _)| *other == way);
    let mut own: Vec<Duration> = own.map(|(_, time)| *time).collect();
    own.sort_unstable();
    let at = |share: f64| {
        let rank = (own.len() as f64 * share).ceil() as usize;
        own.get(rank.max(1) - 1)
            .copied()
            .unwrap_or_default()
            .as_secs_f64()
    };
    format!(
        "p50 {:.3} s, p95 {:.3} s, most {:.3} s",
        at(0.5),
        at(0.95),
        at(1.0)
    )
}

/// Sends one request from each client, all at the same moment.
fn at_once(plan: &CrowdPlan, model: &str, round: usize) -> Vec<(AskedWay, Result<Duration, String>)> {
    let barrier = Barrier::new(plan.clients);
    std::thread::scope(|scope| {
        let ask = |client: usize| {
            let (barrier, way) = (&barrier, AskedWay::of(client));
            let (body, obeys) = way.body(model, round * plan.clients + client);
            scope.spawn(move || {
                barrier.wait();
                (way, answered(&plan.address, &body, obeys))
            })
        };
        let clients: Vec<_> = (0..plan.clients).map(ask).collect();
        let lost = (AskedWay::Beam, Err("a client panicked".to_owned()));
        let joined = clients
            .into_iter()
            .map(|client| client.join().unwrap_or(lost.clone()));
        joined.collect()
    })
}

/// Returns the time until all texts were there, or the error in them.
fn answered(address: &str, body: &Value, obeys: fn(&str) -> bool) -> Result<Duration, String> {
    let begun = Instant::now();
    let broken = |error: std::io::Error| format!("broken connection: {}", error.kind());
    let mut reader = BufReader::new(load::send(address, body).map_err(broken)?);
    let status = load::head(&mut reader).map_err(broken)?;
    let text = load::answer(&mut reader, &mut || ()).map_err(broken)?;
    is_right(status, &text, obeys).map(|()| begun.elapsed())
}

/// Checks that all texts are there and obey the constraint.
fn is_right(status: u16, text: &str, obeys: fn(&str) -> bool) -> Result<(), String> {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let choices = answer["choices"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let right = choices.iter().filter(|choice| {
        choice["finish_reason"] == "stop" && choice["message"]["content"].as_str().is_some_and(obeys)
    });
    match (status, right.count()) {
        (200, found) if found == choices.len() && found > 0 => Ok(()),
        (_, found) => Err(format!("{found} texts obey: status {status}: {text:.300}")),
    }
}

fn plan(args: &[String]) -> Result<Option<CrowdPlan>, Failure> {
    let mut plan = CrowdPlan {
        address: "127.0.0.1:8000".to_owned(),
        clients: 64,
        rounds: 5,
        pid: None,
    };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        if name == "--help" {
            return Ok(None);
        }
        let wrong = || Failure::new(format!("{name} is not understood\n\n{USAGE}"));
        let value = args.next().ok_or_else(wrong)?;
        let number = value.parse::<u32>().map_err(|_| wrong());
        match name.as_str() {
            "--address" => plan.address.clone_from(value),
            "--clients" => plan.clients = number? as usize,
            "--rounds" => plan.rounds = number? as usize,
            "--pid" => plan.pid = Some(number?),
            _ => return Err(wrong()),
        }
    }
    Ok(Some(plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_texts_are_seen() {
        let obeys = |text: &str| text == "yes";
        let answer = |texts: &[&str], finish: &str| {
            let choice = |text: &&str| json!({"message": {"content": text}, "finish_reason": finish});
            json!({"choices": texts.iter().map(choice).collect::<Vec<_>>()}).to_string()
        };
        assert!(is_right(200, &answer(&["yes", "yes"], "stop"), obeys).is_ok());
        for (status, text) in [
            (200, answer(&["yes", "no"], "stop")),
            (200, answer(&["yes"], "length")),
            (200, answer(&[], "stop")),
            (429, answer(&["yes"], "stop")),
            (200, "{".to_owned()),
        ] {
            assert!(is_right(status, &text, obeys).is_err(), "{status} {text}");
        }
    }

    #[test]
    fn percentiles_are_of_one_way() {
        let times: Vec<_> = (1..=20)
            .map(|second| (AskedWay::of(second), Duration::from_secs(second as u64)))
            .collect();
        assert_eq!(
            told(&times, AskedWay::Particles),
            "p50 10.000 s, p95 20.000 s, most 20.000 s"
        );
        assert_eq!(
            told(&times, AskedWay::Beam),
            "p50 9.000 s, p95 19.000 s, most 19.000 s"
        );
        assert_eq!(
            told(&[], AskedWay::Beam),
            "p50 0.000 s, p95 0.000 s, most 0.000 s"
        );
    }
}
