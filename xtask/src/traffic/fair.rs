//! `cargo xtask fair`: measures how long a light client waits alone, and beside eight heavy ones of each
//! kind.
//!
//! The light client repeatedly requests a short answer under a small schema. The heavy ones send expensive
//! requests that the service accepts: sources that are slow to compile or whose masks are slow, prompts as
//! long as the context, sixteen streams a request, and eight texts by particles or beams. Each opens a new
//! connection for every request, so that it counts as a new client each time.

use super::crowd;
use crate::process::Failure;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str = "\
Usage: cargo xtask fair [--address HOST:PORT] [--heavy N] [--seconds N] [--kind WORD]

  Measures a light client of a running service (by default 127.0.0.1:8000) alone and beside N heavy ones (8) of each kind,
  or of those with this word in their name, for so many seconds each (10). Fails where its 99th percentile is beyond three times that of alone and beyond 60 ms.";

/// A 99th percentile that is always acceptable.
const BOUND: Duration = Duration::from_millis(60);

/// Creates the body of a heavy client; a number makes each body new.
type Heavy = fn(&str, u64) -> (&'static str, Value);

const KINDS: [(&str, Heavy); 5] = [
    ("slow masks", slow_masks),
    ("slow compiles", slow_compiles),
    ("long prompts", long_prompts),
    ("streams of n = 16", many_streams),
    ("particles and beams", particles_and_beams),
];

struct FairPlan {
    address: String,
    heavy: usize,
    time: Duration,
    kind: String,
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(plan) = plan(args)? else {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    let model = super::load::model(&plan.address)?;
    light(&plan, &model, Duration::from_secs(1))?;
    let alone = light(&plan, &model, plan.time)?;
    println!("alone: {alone}");
    let mut code = ExitCode::SUCCESS;
    for (name, heavy) in KINDS.into_iter().filter(|(name, _)| name.contains(&plan.kind)) {
        let (beside, sent) = beside(&plan, &model, heavy)?;
        let times = beside.p99.as_secs_f64() / alone.p99.as_secs_f64();
        println!(
            "beside {} of {name}: {beside} ({times:.1} times; they had {sent} answers)",
            plan.heavy
        );
        if times > 3.0 && beside.p99 > BOUND {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn plan(args: &[String]) -> Result<Option<FairPlan>, Failure> {
    let mut plan = FairPlan {
        address: "127.0.0.1:8000".to_owned(),
        heavy: 8,
        time: Duration::from_secs(10),
        kind: String::new(),
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
            "--heavy" => plan.heavy = number? as usize,
            "--kind" => plan.kind.clone_from(value),
            "--seconds" => plan.time = Duration::from_secs(u64::from(number?)),
            _ => return Err(wrong()),
        }
    }
    Ok(Some(plan))
}

/// The waits of the light client.
struct Light {
    p50: Duration,
    p99: Duration,
    most: Duration,
    answers: usize,
    refused: usize,
}

impl std::fmt::Display for Light {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |time: Duration| 1e3 * time.as_secs_f64();
        let (p50, p99, most) = (ms(self.p50), ms(self.p99), ms(self.most));
        write!(
            f,
            "p50 {p50:.1} ms, p99 {p99:.1} ms, most {most:.1} ms, {} answers, {} others",
            self.answers, self.refused
        )
    }
}

fn beside(plan: &FairPlan, model: &str, heavy: Heavy) -> Result<(Light, u64), Failure> {
    let (over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for client in 0..plan.heavy {
            let (over, sent) = (&over, &sent);
            scope.spawn(move || {
                let mut turn = client as u64;
                while !over.load(Ordering::Relaxed) {
                    let (path, body) = heavy(model, turn);
                    if until(&plan.address, path, &body, over).is_some_and(|answer| answer.contains(" 200 "))
                    {
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                    turn += plan.heavy as u64;
                }
            });
        }
        std::thread::sleep(Duration::from_secs(1));
        let light = light(plan, model, plan.time);
        over.store(true, Ordering::Relaxed);
        Ok((light?, sent.load(Ordering::Relaxed)))
    })
}

/// Sends requests over one connection, one after another.
fn light(plan: &FairPlan, model: &str, time: Duration) -> Result<Light, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("the light client: {error}"));
    let schema = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["name", "age"],
        "additionalProperties": false});
    let stream = TcpStream::connect(&plan.address).map_err(failed)?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let mut reader = BufReader::new(stream);
    let (begun, mut times, mut refused) = (Instant::now(), Vec::new(), 0);
    while begun.elapsed() < time {
        let turn = times.len();
        let body = json!({"model": model, "max_tokens": 32, "temperature": 1, "seed": turn, "guided_json": schema,
            "messages": [{"role": "user", "content": format!("Person {turn} is {} years old.", turn % 90)}]});
        let asked = Instant::now();
        let request = request("/v1/chat/completions", &body, "keep-alive");
        reader.get_mut().write_all(request.as_bytes()).map_err(failed)?;
        match answer(&mut reader).map_err(failed)? {
            200 => times.push(asked.elapsed()),
            _ => refused += 1,
        }
    }
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
    Ok(Light {
        p50: at(0.5).unwrap_or(time),
        p99: at(0.99).unwrap_or(time),
        most: times.last().copied().unwrap_or(time),
        answers: times.len(),
        refused,
    })
}

fn request(path: &str, body: &Value, connection: &str) -> String {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: fair\r\nconnection: {connection}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads one answer with a content length; returns its status.
fn answer(reader: &mut BufReader<TcpStream>) -> std::io::Result<u16> {
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            status = rest.get(..3).and_then(|code| code.parse().ok()).unwrap_or(0);
        } else if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(status)
}

/// Returns the whole answer to a request on a separate connection, unless the time is over first.
fn until(address: &str, path: &str, body: &Value, over: &AtomicBool) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(100))).ok()?;
    stream.write_all(request(path, body, "close").as_bytes()).ok()?;
    let (mut text, mut piece) = (Vec::new(), [0; 1 << 14]);
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut piece) {
            Ok(0) => return Some(String::from_utf8_lossy(&text).into_owned()),
            Ok(read) => text.extend_from_slice(&piece[..read]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => (),
            Err(_) => return None,
        }
    }
    None
}

fn chat(model: &str, turn: u64, content: &str, more: Value) -> (&'static str, Value) {
    let mut body = json!({"model": model, "max_tokens": 64, "temperature": 1, "seed": turn,
        "messages": [{"role": "user", "content": content}]});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    ("/v1/chat/completions", body)
}

/// Rules that may all begin with each other: the set of positions of a text is as deep as there are rules.
fn slow_masks(model: &str, turn: u64) -> (&'static str, Value) {
    let rules = 300;
    let mut grammar = format!("root ::= r0 \"{turn}\"\n");
    for rule in 0..rules {
        grammar.push_str(&format!("r{rule} ::= (r{} \"x\")*\n", rule + 1));
    }
    grammar.push_str(&format!("r{rules} ::= \"z\"\n"));
    chat(model, turn, "Write.", json!({"guided_grammar": grammar}))
}

/// Patterns for keys that must be distinguished pairwise, with much work for each pair.
fn slow_compiles(model: &str, turn: u64) -> (&'static str, Value) {
    let pattern = |number: u64| {
        (
            format!("^{number}x{turn}(a|b)*a(a|b){{8}}$"),
            json!({"type": "integer"}),
        )
    };
    let patterns: serde_json::Map<String, Value> = (0..100).map(pattern).collect();
    chat(
        model,
        turn,
        "Write.",
        json!({"guided_json": {"type": "object", "patternProperties": patterns}}),
    )
}

fn long_prompts(model: &str, turn: u64) -> (&'static str, Value) {
    let words: Vec<String> = (0..200).map(|word| format!("word{}", word * 7 + turn)).collect();
    chat(model, turn, &words.join(" "), json!({"max_tokens": 8}))
}

fn many_streams(model: &str, turn: u64) -> (&'static str, Value) {
    let more = json!({"n": 16, "stream": true, "max_tokens": 200, "on_budget": "truncate",
        "guided_regex": "[a-z ]{400}"});
    chat(model, turn, "Tell a long story.", more)
}

fn particles_and_beams(model: &str, turn: u64) -> (&'static str, Value) {
    ("/v1/chat/completions", crowd::body(model, turn as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heavy_body_is_a_new_one() {
        for (name, heavy) in KINDS {
            let (path, body) = heavy("m", 1);
            assert!(path.starts_with('/') && body["model"] == "m", "{name}");
            assert_ne!(body, heavy("m", 2).1, "{name}");
        }
    }
}
