//! `cargo xtask load`: many independent clients at once: streams, whole answers, clients that disconnect in
//! the middle, and invalid requests. Every answer is checked.
//!
//! It implements HTTP itself, so that nothing between it and the service can hide a mistake.

use super::driver::{Clients, Seen, chat};
use super::promise::{self, Promise, Told};
use super::{PATIENCE, address, memory, model, page};
use crate::options::Options;
use crate::process::{Failure, code};
use crate::traffic::http::{Answer, CHAT, post};
use serde_json::json;
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "\
Usage: cargo xtask load [--address HOST:PORT] [--clients N] [--seconds N] [--pid PID]

  Loads a running service (by default 127.0.0.1:8000, 200 clients, 300 s). With --pid, the memory of that process is
  read a fifth into the time and at the end.";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(options) = Options::read(args, USAGE)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let (address, time) = (address(&options), options.seconds(300));
    let model = model(address)?;
    let (count, first, step) = (options.number("--clients", 200), 0, Some(7));
    let begun = Instant::now();
    let turn = |number: usize, _: &_, seen: &mut Seen| ask(address, &model, number, seen);
    let (seen, warm) = Clients { count, first, step }.drive(turn, || {
        std::thread::sleep(time / 5);
        let warm = memory(&options);
        std::thread::sleep(time - time / 5);
        warm
    });
    let took = begun.elapsed().as_secs_f64();
    if let (Some(warm), Some(end)) = (warm, memory(&options)) {
        println!("memory: {warm} KiB after warm-up, {end} KiB at the end");
    }
    let total: usize = seen.outcomes.values().sum();
    println!("{total} requests in {took:.0} s");
    for (outcome, count) in &seen.outcomes {
        println!("  {count:>8}  {outcome}");
    }
    for times in ["first byte", "whole answer"] {
        seen.print(times, &[("p50", 0.5), ("p99", 0.99)]);
    }
    seen.print_wrong();
    told_by_the_service(&page(address, "/metrics")?);
    Ok(code(seen.wrong.is_empty()))
}

/// Prints the service's own metrics: how long requests waited for their first token, and the service's time
/// apart from the model.
fn told_by_the_service(metrics: &str) {
    let names = [
        ("vllm:time_to_first_token_seconds", "first token"),
        ("lexiform_own_seconds_per_request", "own time of a request"),
        ("lexiform_own_seconds_per_token", "own time of a streamed token"),
    ];
    for (name, what) in names {
        let histogram = Histogram::read(metrics, name);
        let (half, most) = (histogram.at(0.5), histogram.at(0.99));
        let mean = 1e6 * histogram.sum / histogram.count.max(1.0);
        println!("{what}: p50 up to {half} s, p99 up to {most} s, mean {mean:.1} µs");
    }
    for name in [
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "lexiform_panics_total",
        "lexiform_invalid_output_total",
    ] {
        println!("{name} {}", number(metrics, name));
    }
}

/// A Prometheus histogram: the number of values up to each bound.
struct Histogram {
    buckets: Vec<(String, f64)>,
    count: f64,
    sum: f64,
}

impl Histogram {
    fn read(metrics: &str, name: &str) -> Self {
        let prefix = format!("{name}_bucket{{");
        let bucket = |line: &str| {
            let bound = line.strip_prefix(&prefix)?.split_once("le=\"")?.1;
            let (bound, count) = bound.split_once("\"} ")?;
            Some((bound.to_owned(), count.parse().ok()?))
        };
        Self {
            buckets: metrics.lines().filter_map(bucket).collect(),
            count: number(metrics, &format!("{name}_count")),
            sum: number(metrics, &format!("{name}_sum")),
        }
    }

    /// Returns the bound below which this share of all values is.
    fn at(&self, share: f64) -> &str {
        let wanted = self.count * share;
        let found = self.buckets.iter().find(|(_, count)| *count >= wanted);
        found.map_or("?", |(bound, _)| bound)
    }
}

/// Returns a metric of the service.
fn number(metrics: &str, name: &str) -> f64 {
    let of = |line: &str| {
        let (_, value) = line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once(' ')?;
        value.parse().ok()
    };
    metrics.lines().find_map(of).unwrap_or(0.0)
}

/// Sends the request of a turn, and records its outcome.
fn ask(address: &str, model: &str, turn: usize, seen: &mut Seen) {
    let (kind, promise) = (turn % 8, Promise::of(promise::SHORT, turn));
    let mut body = chat(model, turn, promise.fields());
    match kind {
        6 => body["guided_regex"] = json!("("),
        7 => body["temperature"] = json!("hot"),
        _ => body["stream"] = json!(kind < 5),
    }
    let leaves = |answer: &Answer| kind == 4 && answer.status == 200 && answer.first.is_some();
    let answer = post(address, CHAT, &body.to_string(), |answer| {
        answer.time < PATIENCE && !leaves(answer)
    });
    if leaves(&answer) {
        return seen.count("left in the middle");
    }
    if let Some(error) = &answer.broken {
        return seen.count(format!("broken connection: {}", error.kind()));
    }
    seen.time("first byte", answer.first.unwrap_or(answer.time));
    seen.time("whole answer", answer.time);
    match judge(answer.status, kind, &answer.body, |text| promise.obeys(text)) {
        Ok(outcome) => seen.count(outcome),
        Err(wrong) => {
            seen.count("WRONG");
            seen.wrong.push(wrong);
        }
    }
}

/// Returns the kind of an answer, or the reason why it is wrong.
fn judge(status: u16, kind: usize, text: &str, obeys: impl Fn(&str) -> bool) -> Result<String, String> {
    let told = match kind {
        ..5 => Told::streamed(text),
        _ => Told::whole(text),
    };
    let said = match (status, kind, told.finish.as_str()) {
        (408 | 429 | 503, ..) => return Ok(format!("refused with {status}")),
        (400, 6 | 7, _) => Ok("a wrong request, refused with 400"),
        (200, 6 | 7, _) => Err("a wrong request was answered"),
        (200, _, "stop") if obeys(&told.content) => Ok("a right answer"),
        (200, _, "stop") => Err("an answer does not obey"),
        (200, _, "length") => Ok("a cut answer"),
        (200, ..) if !told.error.is_empty() => Ok("an error event"),
        (200, ..) => Err("an answer has no end"),
        _ => Err("an unexpected status"),
    };
    said.map(str::to_owned)
        .map_err(|why| format!("{why}: status {status}: {text:.300}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_of_the_service_is_read() {
        let metrics = "# TYPE a histogram\na_bucket{engine=\"0\",le=\"0.1\"} 3\na_bucket{engine=\"0\",le=\"2\"} 9\n\
                       a_bucket{engine=\"0\",le=\"+Inf\"} 10\na_sum{engine=\"0\"} 4.5\na_count{engine=\"0\"} 10\n\
                       ab_count{engine=\"0\"} 7\n";
        let histogram = Histogram::read(metrics, "a");
        assert_eq!((histogram.count, histogram.sum), (10.0, 4.5));
        assert_eq!(
            (histogram.at(0.3), histogram.at(0.5), histogram.at(0.99)),
            ("0.1", "2", "+Inf")
        );
        assert_eq!(Histogram::read(metrics, "b").at(0.5), "?");
    }

    #[test]
    fn wrong_answers_are_seen() {
        let obeys = |text: &str| text == "yes";
        let whole = |content: &str, finish: &str| {
            json!({"choices": [{"message": {"content": content}, "finish_reason": finish}]}).to_string()
        };
        assert!(judge(200, 5, &whole("yes", "stop"), obeys).is_ok());
        assert!(judge(200, 5, &whole("no", "stop"), obeys).is_err());
        assert!(judge(200, 5, &whole("yes", ""), obeys).is_err());
        assert!(judge(200, 6, &whole("yes", "stop"), obeys).is_err());
        assert!(judge(500, 5, "", obeys).is_err());
        let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"yes\"}}]}\n\n";
        assert!(judge(200, 0, stream, obeys).is_err(), "a stream without an end");
    }
}
