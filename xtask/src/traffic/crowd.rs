//! `cargo xtask crowd`: clients that all request several texts at the same time, half of them by particles
//! and half by beams. Every text is checked.

use super::driver::{Clients, Seen, chat, extended};
use super::promise::{self, Promise};
use super::{PATIENCE, address, memory, model};
use crate::options::Options;
use crate::process::{Failure, code};
use crate::traffic::http::{CHAT, post_as};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "\
Usage: cargo xtask crowd [--address HOST:PORT] [--clients N] [--rounds N] [--pid PID]

  So many clients (64) ask a running service (by default 127.0.0.1:8000) at the same moment for eight texts each, by
  law: smc with eight particles and by search: beam of width 8, and do so again when all are answered, so many times (5).
  With --pid, the memory of that process is read after each round. Fails where an answer is refused or does not obey.";

/// The number of texts of a request.
const TEXTS: usize = 8;

/// The methods by which the texts are generated; clients take turns with them.
const METHODS: [&str; 2] = ["smc", "beam"];

/// Returns a request for eight texts by a method, and what each must obey.
fn request(model: &str, seed: usize, method: &str) -> (Value, Promise) {
    let promise = Promise::of(promise::OF_MANY, seed / 2);
    let more = match method {
        "smc" => json!({"n": TEXTS, "law": "smc", "particles": TEXTS}),
        _ => json!({"n": TEXTS, "search": {"kind": "beam", "width": TEXTS}}),
    };
    (extended(chat(model, seed, promise.fields()), more), promise)
}

/// Returns a request for eight texts, by particles or by beams.
pub(super) fn body(model: &str, seed: usize) -> Value {
    request(model, seed, METHODS[seed % 2]).0
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(options) = Options::read(args, USAGE)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let (address, count) = (address(&options), options.number("--clients", 64));
    let model = model(address)?;
    let mut seen = Seen::default();
    for round in 0..options.number("--rounds", 5) {
        let first = round * count;
        let clients = Clients {
            count,
            first,
            step: None,
        };
        let begun = Instant::now();
        let turn = |number: usize, _: &_, seen: &mut Seen| {
            ask(address, &model, number, METHODS[(number - first) % 2], seen);
        };
        seen.add(clients.drive(turn, || ()).0);
        let took = begun.elapsed().as_secs_f64();
        let memory = memory(&options).map_or_else(String::new, |kib| format!(", {kib} KiB of memory"));
        println!("round {round}: {count} clients in {took:.2} s{memory}");
    }
    for method in METHODS {
        seen.print(method, &[("p50", 0.5), ("p95", 0.95), ("most", 1.0)]);
    }
    seen.print_wrong();
    let answers: usize = METHODS.iter().map(|method| seen.number_of(method)).sum();
    println!("{answers} answers, {} wrong", seen.wrong.len());
    Ok(code(seen.wrong.is_empty()))
}

/// Records the time until all texts were there, or the error in them.
fn ask(address: &str, model: &str, seed: usize, method: &'static str, seen: &mut Seen) {
    let (body, promise) = request(model, seed, method);
    let body = body.to_string();
    let answer = post_as(seed, address, (CHAT, &body), |answer| answer.time < PATIENCE);
    let right = match &answer.broken {
        Some(error) => Err(format!("broken connection: {}", error.kind())),
        None => is_right(answer.status, &answer.body, |text| promise.obeys(text)),
    };
    match right {
        Ok(()) => seen.time(method, answer.time),
        Err(why) => seen.wrong.push(why),
    }
}

/// Checks that all texts are there and obey the constraint.
fn is_right(status: u16, text: &str, obeys: impl Fn(&str) -> bool) -> Result<(), String> {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let choices = answer["choices"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let right = choices.iter().filter(|choice| {
        choice["finish_reason"] == "stop" && choice["message"]["content"].as_str().is_some_and(&obeys)
    });
    match (status, right.count()) {
        (200, found) if found == choices.len() && found > 0 => Ok(()),
        (_, found) => Err(format!("{found} texts obey: status {status}: {text:.300}")),
    }
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
}
