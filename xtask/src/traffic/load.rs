//! `cargo xtask load`: many independent clients at once: streams, whole answers, clients that disconnect in
//! the middle, and invalid requests. Every answer is checked.
//!
//! It implements HTTP itself, so that nothing between it and the service can hide a mistake.

use crate::process::Failure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "\
Usage: cargo xtask load [--address HOST:PORT] [--clients N] [--seconds N] [--pid PID]

  Loads a running service (by default 127.0.0.1:8000, 200 clients, 300 s). With --pid, the memory of that process is
  read a fifth into the time and at the end.";

struct LoadPlan {
    address: String,
    clients: usize,
    time: Duration,
    pid: Option<u32>,
}

/// The outcomes that the clients saw.
#[derive(Default)]
struct SeenAnswers {
    outcomes: BTreeMap<String, u64>,
    wrong: Vec<String>,
    first: Vec<Duration>,
    whole: Vec<Duration>,
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(plan) = plan(args)? else {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    let model = model(&plan.address)?;
    let begun = Instant::now();
    let seen = std::thread::scope(|scope| {
        let (plan, model) = (&plan, model.as_str());
        let clients: Vec<_> = (0..plan.clients)
            .map(|number| scope.spawn(move || client(plan, model, number, begun)))
            .collect();
        std::thread::sleep(plan.time / 5);
        let warm = plan.pid.and_then(memory);
        let mut all = SeenAnswers::default();
        for client in clients {
            all.add(client.join().unwrap_or_default());
        }
        let end = plan.pid.and_then(memory);
        if let (Some(warm), Some(end)) = (warm, end) {
            println!("memory: {warm} KiB after warm-up, {end} KiB at the end");
        }
        all
    });
    let code = seen.report(begun.elapsed());
    told_by_the_service(&get(&plan.address, "/metrics")?);
    Ok(code)
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
        line.strip_prefix(name)?
            .strip_prefix('{')?
            .rsplit_once(' ')?
            .1
            .parse()
            .ok()
    };
    metrics.lines().find_map(of).unwrap_or(0.0)
}

fn plan(args: &[String]) -> Result<Option<LoadPlan>, Failure> {
    let mut plan = LoadPlan {
        address: "127.0.0.1:8000".to_owned(),
        clients: 200,
        time: Duration::from_secs(300),
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
            "--seconds" => plan.time = Duration::from_secs(u64::from(number?)),
            "--pid" => plan.pid = Some(number?),
            _ => return Err(wrong()),
        }
    }
    Ok(Some(plan))
}

/// Returns the resident memory of a process, in KiB.
pub(super) fn memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the body of the service's answer for a path.
fn get(address: &str, path: &str) -> Result<String, Failure> {
    let failed = |why: String| Failure::new(format!("no service answers at {address}: {why}"));
    let request = format!("GET {path} HTTP/1.1\r\nhost: load\r\nconnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(address).map_err(|error| failed(error.to_string()))?;
    let mut answer = String::new();
    let exchanged = stream
        .write_all(request.as_bytes())
        .and_then(|()| stream.read_to_string(&mut answer));
    exchanged.map_err(|error| failed(error.to_string()))?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok(body.to_owned())
}

pub(crate) fn model(address: &str) -> Result<String, Failure> {
    let list = get(address, "/v1/models")?;
    let list: Value = serde_json::from_str(&list)
        .map_err(|error| Failure::new(format!("what answers at {address} lists no models: {error}")))?;
    Ok(list["data"][0]["id"].as_str().unwrap_or_default().to_owned())
}

fn client(plan: &LoadPlan, model: &str, number: usize, begun: Instant) -> SeenAnswers {
    let mut seen = SeenAnswers::default();
    let mut turn = number;
    while begun.elapsed() < plan.time {
        let kind = turn % 8;
        let outcome = match ask(plan, model, turn, kind, &mut seen) {
            Ok(outcome) => outcome,
            Err(error) => format!("broken connection: {}", error.kind()),
        };
        *seen.outcomes.entry(outcome).or_default() += 1;
        turn += 7;
    }
    seen
}

/// Returns schemas of different kinds, and the function that checks an answer.
pub(super) fn constraint(turn: usize) -> (Value, fn(&str) -> bool) {
    match turn % 4 {
        0 => {
            let schema = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 20},
                "age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["name", "age"],
                "additionalProperties": false});
            (json!({"guided_json": schema}), |text| {
                serde_json::from_str::<Value>(text)
                    .is_ok_and(|value| value["age"].is_u64() && value["name"].is_string())
            })
        }
        1 => {
            let schema = json!({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3 + turn % 5});
            (json!({"guided_json": schema}), |text| {
                serde_json::from_str::<Value>(text)
                    .is_ok_and(|value| value.as_array().is_some_and(|all| !all.is_empty()))
            })
        }
        2 => (json!({"guided_regex": "[a-f]{3}-[0-9]{2}"}), |text| {
            text.len() == 6 && text.as_bytes()[3] == b'-'
        }),
        _ => (json!({"guided_choice": ["yes", "no"]}), |text| {
            ["yes", "no"].contains(&text)
        }),
    }
}

fn ask(
    plan: &LoadPlan,
    model: &str,
    turn: usize,
    kind: usize,
    seen: &mut SeenAnswers,
) -> std::io::Result<String> {
    let (constraint, obeys) = constraint(turn);
    let mut body = json!({"model": model, "max_tokens": 64, "temperature": 1, "seed": turn,
        "messages": [{"role": "user", "content": format!("Person {turn} is {} years old.", turn % 90)}]});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), constraint) {
        body.extend(more);
    }
    match kind {
        6 => body["guided_regex"] = json!("("),
        7 => body["temperature"] = json!("hot"),
        _ => body["stream"] = json!(kind < 5),
    }
    let begun = Instant::now();
    let mut reader = BufReader::new(send(&plan.address, &body)?);
    let status = head(&mut reader)?;
    if kind == 4 && status == 200 {
        let mut some = [0; 64];
        let _ = reader.read(&mut some)?;
        return Ok("left in the middle".to_owned());
    }
    let text = answer(&mut reader, &mut || seen.first.push(begun.elapsed()))?;
    seen.whole.push(begun.elapsed());
    let told = judge(status, kind, &text, obeys);
    told.or_else(|wrong| {
        seen.wrong.push(wrong);
        Ok("WRONG".to_owned())
    })
}

pub(super) fn send(address: &str, body: &Value) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    let body = body.to_string();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: load\r\nconnection: close\r\ncontent-type: application/json";
    stream.write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    Ok(stream)
}

pub(super) fn head(reader: &mut impl BufRead) -> std::io::Result<u16> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    while line.trim_end() != "" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            break;
        }
    }
    Ok(status)
}

pub(super) fn answer(reader: &mut impl BufRead, first: &mut dyn FnMut()) -> std::io::Result<String> {
    let mut text = Vec::new();
    reader.fill_buf()?;
    first();
    reader.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the kind of an answer, or the reason why it is wrong.
fn judge(status: u16, kind: usize, text: &str, obeys: fn(&str) -> bool) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("{why}: status {status}: {text:.300}"));
    match (status, kind) {
        (429 | 503, _) => Ok(format!("refused with {status}")),
        (408, _) => Ok("refused with 408".to_owned()),
        (400, 6 | 7) => Ok("a wrong request, refused with 400".to_owned()),
        (200, 6 | 7) => wrong("a wrong request was answered"),
        (200, _) => {
            let (content, finish) = if kind < 5 { streamed(text) } else { plain(text) };
            match finish.as_str() {
                "stop" if obeys(&content) => Ok("a right answer".to_owned()),
                "stop" => wrong("an answer does not obey"),
                "length" => Ok("a cut answer".to_owned()),
                "error" => Ok("an error event".to_owned()),
                _ => wrong("an answer has no end"),
            }
        }
        _ => wrong("an unexpected status"),
    }
}

fn streamed(text: &str) -> (String, String) {
    let (mut content, mut finish) = (String::new(), String::new());
    for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let choice = &event["choices"][0];
        content.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        if let Some(reason) = choice["finish_reason"].as_str() {
            finish = reason.to_owned();
        } else if event["error"].is_object() {
            finish = "error".to_owned();
        }
    }
    (content, finish)
}

fn plain(text: &str) -> (String, String) {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let choice = &answer["choices"][0];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&choice["message"]["content"]),
        text(&choice["finish_reason"]),
    )
}

impl SeenAnswers {
    fn add(&mut self, other: SeenAnswers) {
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        self.wrong.extend(other.wrong);
        self.first.extend(other.first);
        self.whole.extend(other.whole);
    }

    fn report(mut self, time: Duration) -> ExitCode {
        let total: u64 = self.outcomes.values().sum();
        println!("{total} requests in {:.0} s", time.as_secs_f64());
        for (outcome, count) in &self.outcomes {
            println!("  {count:>8}  {outcome}");
        }
        for (name, times) in [("first byte", &mut self.first), ("whole answer", &mut self.whole)] {
            times.sort_unstable();
            let at = |share: f64| {
                times
                    .get((times.len() as f64 * share) as usize)
                    .copied()
                    .unwrap_or_default()
            };
            let (half, most) = (at(0.5).as_secs_f64(), at(0.99).as_secs_f64());
            println!("{name}: p50 {half:.3} s, p99 {most:.3} s");
        }
        for wrong in self.wrong.iter().take(5) {
            println!("wrong: {wrong}");
        }
        if self.wrong.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
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
