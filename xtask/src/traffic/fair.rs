//! `cargo xtask fair`: measures how long a light client waits alone, and beside eight heavy ones of each
//! kind.
//!
//! The light client repeatedly requests a short answer under a small schema. The heavy ones send expensive
//! requests that the service accepts: sources that are slow to compile or whose masks are slow, prompts as
//! long as the context, sixteen streams a request, and eight texts by particles or beams. Each sends the
//! address of a new client with every request, which a service believes that was started with
//! `--trusted-proxy 127.0.0.1`; for any other, all of them and the light one are a single client.

use super::driver::{Clients, Seen, chat, said};
use super::{PATIENCE, address, crowd, model};
use crate::options::Options;
use crate::process::{Failure, code};
use crate::traffic::http::{CHAT, as_client, connect, head, post_as, talk};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const USAGE: &str = "\
Usage: cargo xtask fair [--address HOST:PORT] [--heavy N] [--seconds N] [--kind WORD]

  Measures a light client of a running service (by default 127.0.0.1:8000, started with --trusted-proxy 127.0.0.1, so
  that it tells the clients apart) alone and beside N heavy ones (8) of each kind, or of those with this word in their name, for so many seconds each (10). Fails where its 99th percentile is beyond three times that of alone and beyond 60 ms.";

/// A 99th percentile that is always acceptable.
const BOUND: Duration = Duration::from_millis(60);

/// Creates the body of a heavy client; a number makes each body new.
type Heavy = fn(&str, usize) -> Value;

const KINDS: [(&str, Heavy); 5] = [
    ("slow masks", slow_masks),
    ("slow compiles", slow_compiles),
    ("long prompts", long_prompts),
    ("streams of n = 16", many_streams),
    ("particles and beams", crowd::body),
];

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(options) = Options::read(args, USAGE)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let (address, time, count) = (
        address(&options),
        options.seconds(10),
        options.number("--heavy", 8),
    );
    let model = model(address)?;
    light(address, &model, Duration::from_secs(1))?;
    let (alone, told) = light(address, &model, time)?;
    println!("alone: {told}");
    let clients = Clients {
        count,
        first: 0,
        step: Some(count),
    };
    let (mut is_fair, word) = (true, options.get("--kind").unwrap_or_default());
    for (name, heavy) in KINDS.into_iter().filter(|(name, _)| name.contains(word)) {
        let turn = |number: usize, over: &AtomicBool, seen: &mut Seen| {
            let body = heavy(&model, number).to_string();
            let goes_on = |_: &_| !over.load(Relaxed);
            let answer = post_as(1 + number, address, (CHAT, &body), goes_on);
            if answer.status == 200 && answer.broken.is_none() {
                seen.count("answers");
            }
        };
        let (heavy, beside) = clients.drive(turn, || {
            std::thread::sleep(Duration::from_secs(1));
            light(address, &model, time)
        });
        let ((beside, told), sent) = (beside?, heavy.outcomes.get("answers").unwrap_or(&0));
        let times = beside.as_secs_f64() / alone.as_secs_f64();
        println!("beside {count} of {name}: {told} ({times:.1} times; they had {sent} answers)");
        is_fair &= times <= 3.0 || beside <= BOUND;
    }
    Ok(code(is_fair))
}

/// Sends requests over one connection, one after another. Returns the 99th percentile of their times, and a
/// description of all.
fn light(address: &str, model: &str, time: Duration) -> Result<(Duration, String), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("the light client: {error}"));
    let schema = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["name", "age"],
        "additionalProperties": false});
    let mut stream = connect(address).map_err(failed)?;
    let (begun, mut seen, mut others) = (Instant::now(), Seen::default(), 0);
    while begun.elapsed() < time {
        let more = json!({"max_tokens": 32, "guided_json": schema});
        let body = chat(model, seen.number_of("light"), more).to_string();
        let request = as_client(0, &head(CHAT, body.len(), "keep-alive")) + &body;
        let answer = talk(&mut stream, Instant::now(), &request, |answer| {
            answer.time < PATIENCE
        });
        match (answer.broken, answer.status) {
            (Some(error), _) => return Err(failed(error)),
            (None, 0) => return Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
            (None, 200) => seen.time("light", answer.time),
            (None, _) => others += 1,
        }
    }
    let at = |share: f64| seen.at("light", share).unwrap_or(time);
    let [p50, p99, most] = [0.5, 0.99, 1.0].map(|share| 1e3 * at(share).as_secs_f64());
    let answers = seen.number_of("light");
    let told =
        format!("p50 {p50:.1} ms, p99 {p99:.1} ms, most {most:.1} ms, {answers} answers, {others} others");
    Ok((at(0.99), told))
}

/// Rules that may all begin with each other: the set of positions of a text is as deep as there are rules.
fn slow_masks(model: &str, turn: usize) -> Value {
    let rule = |at: usize| format!("r{at} ::= (r{} \"x\")*\n", at + 1);
    let rules: String = (0..300).map(rule).collect();
    let grammar = format!("root ::= r0 \"{turn}\"\n{rules}r300 ::= \"z\"\n");
    chat(
        model,
        turn,
        json!({"messages": said("Write."), "guided_grammar": grammar}),
    )
}

/// Patterns for keys that must be distinguished pairwise, with much work for each pair.
fn slow_compiles(model: &str, turn: usize) -> Value {
    let pattern = |number| format!("^{number}x{turn}(a|b)*a(a|b){{8}}$");
    let patterns = (0..100).map(|number| (pattern(number), json!({"type": "integer"})));
    let patterns: serde_json::Map<String, Value> = patterns.collect();
    let schema = json!({"type": "object", "patternProperties": patterns});
    chat(
        model,
        turn,
        json!({"messages": said("Write."), "guided_json": schema}),
    )
}

fn long_prompts(model: &str, turn: usize) -> Value {
    let words: Vec<String> = (0..200).map(|word| format!("word{}", word * 7 + turn)).collect();
    chat(
        model,
        turn,
        json!({"messages": said(&words.join(" ")), "max_tokens": 8}),
    )
}

fn many_streams(model: &str, turn: usize) -> Value {
    let more = json!({"messages": said("Tell a long story."), "n": 16, "stream": true, "max_tokens": 200,
        "on_budget": "truncate", "guided_regex": "[a-z ]{400}"});
    chat(model, turn, more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heavy_body_is_a_new_one() {
        for (name, heavy) in KINDS {
            let body = heavy("m", 1);
            assert_eq!(body["model"], "m", "{name}");
            assert_ne!(body, heavy("m", 2), "{name}");
        }
    }
}
