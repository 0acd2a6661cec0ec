//! Whole runs against a server that does what a test tells it, good and bad.

mod endpoints;
mod scripted;

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::{Value, json};

use self::scripted::{Reaction, Scripted, refused, response, streamed, title};
use super::{Args, Run, evaluate};
use crate::eval::generate::runner::End;
use crate::failure::Failure;

const USAGE: &str = r#"{"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}}"#;

fn valid() -> Reaction {
    streamed("{\"a\": 1}", "stop", &[USAGE])
}

/// A folder that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lexiform-generate-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a collection with a schema of each of these names.
    fn collection(&self, names: &[&str]) -> PathBuf {
        let line = |name: &&str| {
            let schema = json!({"title": name, "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
            format!("{}\n", json!({"name": name, "schema": schema, "tests": []}))
        };
        let path = self.path("data.jsonl");
        fs::write(&path, names.iter().map(line).collect::<String>()).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    args: Args,
}

fn args(url: &str, data: &Path, more: &[&str]) -> Args {
    let data = data.to_str().expect("a path");
    let mut words = vec!["generate", "--endpoint", url, "--model", "m", "--data", data];
    words.extend(more);
    Program::parse_from(words).args
}

fn ran(url: &str, data: &Path, more: &[&str]) -> Run {
    evaluate(&args(url, data, more)).expect("a run")
}

fn failure(url: &str, data: &Path, more: &[&str]) -> Failure {
    evaluate(&args(url, data, more)).err().expect("a failure")
}

fn figure<'a>(run: &'a Run, name: &str) -> &'a Value {
    &run.report.figures["both"][name]
}

fn bad_reaction(title: &str, before: usize) -> Reaction {
    let text = |text: &str| streamed(text, "stop", &[USAGE]);
    match (title, before) {
        ("invalid", _) => text("{\"a\": true}"),
        ("not_json", _) => text("{\"a\": "),
        ("wrapped", _) => text("```json\n{\"a\": 1}\n```"),
        ("truncated", _) => streamed("{\"a\": [", "length", &[USAGE]),
        ("whole_at_the_limit", _) => streamed("{\"a\": 2}", "length", &[USAGE]),
        ("refused", _) => refused("400 Bad Request", json!({"message": "`not` is not supported"})),
        ("refused_in_stream", _) => {
            streamed("", "", &[r#"{"error": {"message": "bad grammar", "code": 400}}"#])
        }
        ("too_long", _) => refused(
            "400 Bad Request",
            json!({"code": "context_length_exceeded", "message": "long"}),
        ),
        ("denied", _) => refused("401 Unauthorized", json!({"message": "who?"})),
        ("not_found", _) => refused("404 Not Found", json!({"message": "no model `m`"})),
        ("html", _) => response("200 OK", "text/html", "\r\n<html>Welcome</html>\n"),
        ("moved", _) => response(
            "301 Moved",
            "text/html",
            "location: http://elsewhere/\r\ncontent-length: 0\r\n\r\n",
        ),
        ("cut", _) => response(
            "200 OK",
            "text/event-stream",
            "\r\ndata: {\"choices\": [{\"delta\": {\"content\": \"{\"}}]}\n\n",
        ),
        ("cut_once", 0) => response(
            "200 OK",
            "text/event-stream",
            "content-length: 900\r\n\r\ndata: {\"choices\": []}\n\n",
        ),
        ("busy_once", 0) => response(
            "429 Too Many Requests",
            "text/plain",
            "retry-after: 0\r\ncontent-length: 0\r\n\r\n",
        ),
        ("broken", _) => response(
            "502 Bad Gateway",
            "text/html",
            "retry-after: 0\r\ncontent-length: 4\r\n\r\n<b/>",
        ),
        ("no_usage", _) => streamed("{\"a\": 1}", "stop", &[]),
        ("null_usage", _) => streamed("{\"a\": 1}", "stop", &[r#"{"choices": [], "usage": null}"#]),
        ("silent", _) => Reaction::Send(String::new()),
        _ => valid(),
    }
}

const TITLES: [&str; 20] = [
    "valid",
    "invalid",
    "not_json",
    "wrapped",
    "truncated",
    "whole_at_the_limit",
    "refused",
    "refused_in_stream",
    "too_long",
    "denied",
    "not_found",
    "html",
    "moved",
    "cut",
    "cut_once",
    "busy_once",
    "broken",
    "no_usage",
    "null_usage",
    "silent",
];

/// Every way in which an endpoint misbehaves is counted by its kind, and the others are still asked.
#[test]
fn bad_reactions_are_counted_by_their_kind() {
    let server = Scripted::new(bad_reaction);
    let folder = Folder::new("kinds");
    let data = folder.collection(&TITLES);
    let run = ran(&server.url(), &data, &["--retries", "1"]);
    assert_eq!(run.end, End::Complete);
    let counts = [
        ("asked", 20),
        ("valid", 6),
        ("invalid", 1),
        ("not_json", 1),
        ("wrapped", 1),
        ("truncated", 1),
        ("refused", 2),
        ("too_long", 1),
        ("failed", 7),
        ("unjudged", 0),
        ("answers_without_usage", 2),
    ];
    for (name, count) in counts {
        assert_eq!(figure(&run, name), &json!(count), "{name}");
    }
    let faults = json!({"cut": 2, "denied": 1, "not_found": 1, "not_the_api": 2, "refused": 2,
                        "server_error": 1, "too_long": 1});
    assert_eq!(figure(&run, "faults"), &faults);
    assert_eq!(
        figure(&run, "retried"),
        &json!({"busy": 1, "cut": 3, "server_error": 1})
    );
    assert_eq!(figure(&run, "finish"), &json!({"length": 2, "stop": 8}));
    assert_eq!(run.report.failures.len(), 14);
}

#[test]
fn failures_name_their_place_and_the_command_that_asks_again() {
    let server = Scripted::new(bad_reaction);
    let folder = Folder::new("places");
    let data = folder.collection(&["invalid", "refused"]);
    let run = ran(&server.url(), &data, &["--max-tokens", "9", "--seed", "3"]);
    let failures = &run.report.failures;
    let of = |name: &str| {
        failures
            .iter()
            .find(|it| it.case == format!("{name} (both)"))
            .expect("it failed")
    };
    assert_eq!(
        (of("invalid").what.as_str(), of("refused").what.as_str()),
        ("invalid", "refused")
    );
    assert!(
        of("invalid").reason.starts_with("/a: type: "),
        "{}",
        of("invalid").reason
    );
    assert_eq!(of("refused").reason, "status 400: `not` is not supported");
    let (url, data) = (server.url(), data.display());
    let expected = format!(
        "lexiform eval generate --endpoint {url} --model m --constraint json_schema --max-tokens 9 --temperature 0 \
         --seed 3 --data {data} --arm both --only invalid"
    );
    assert_eq!(of("invalid").command, expected);
}

#[test]
fn what_the_endpoint_says_of_its_work_is_summed() {
    let server = Scripted::new(|_, _| {
        let told = r#"{"choices": [], "lexiform": {"drafted": 5, "accepted": 2, "law": "local"}}"#;
        streamed("{\"a\": 1}", "stop", &[USAGE, told])
    });
    let folder = Folder::new("usage");
    let data = folder.collection(&["x", "y"]);
    let run = ran(&server.url(), &data, &[]);
    assert_eq!(figure(&run, "prompt_tokens"), 20);
    assert_eq!(figure(&run, "cached_tokens"), 8);
    assert_eq!(figure(&run, "completion_tokens"), 6);
    assert_eq!(figure(&run, "lexiform"), &json!({"accepted": 4, "drafted": 10}));
    assert_eq!(figure(&run, "first_token_ms")["count"], 2);
}

#[test]
fn an_answer_that_is_late_is_given_up() {
    let server = Scripted::new(|title, _| if title == "late" { Reaction::Wait } else { valid() });
    let folder = Folder::new("late");
    let data = folder.collection(&["late", "valid"]);
    let run = ran(
        &server.url(),
        &data,
        &["--timeout-seconds", "1", "--retries", "0"],
    );
    assert_eq!(figure(&run, "faults"), &json!({"late": 1}));
    assert_eq!(figure(&run, "valid"), 1);
}

/// Nobody wants to wait for thousands of refused connections.
#[test]
fn an_endpoint_that_is_not_there_ends_the_run() {
    let port = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let folder = Folder::new("nobody");
    let names: Vec<String> = (0..50).map(|it| it.to_string()).collect();
    let data = folder.collection(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let more = ["--retries", "0", "--concurrency", "1"];
    let url = format!("http://{port}/v1");
    let run = ran(&url, &data, &more);
    assert_eq!(run.end, End::GaveUp);
    assert_eq!(figure(&run, "faults"), &json!({"unreachable": 20}));
    let told = args(&url, &data, &more).why_it_gave_up(&run.records);
    assert!(told.contains("connection refused"), "{told}");
}

/// A connection with TLS needs a provider of cryptography; without one, the client panics.
#[test]
fn an_endpoint_that_does_not_speak_tls_is_unreachable() {
    let server = Scripted::new(|_, _| valid());
    let folder = Folder::new("tls");
    let data = folder.collection(&["x"]);
    let url = format!("https://{}/v1", server.address);
    match evaluate(&args(&url, &data, &["--retries", "0", "--timeout-seconds", "5"])) {
        Ok(run) => assert_eq!(figure(&run, "failed"), 1),
        Err(failure) => assert!(failure.to_string().contains("SSL_CERT_FILE"), "{failure}"),
    }
}

/// The report without what differs from run to run.
fn lasting(run: &Run) -> Value {
    let mut figures = run.report.figures["both"].clone();
    for name in ["first_token_ms", "token_ms"] {
        figures[name] = Value::Null;
    }
    json!([figures, serde_json::to_value(&run.report.failures).expect("JSON")])
}

#[test]
fn a_run_that_was_stopped_goes_on_and_ends_with_the_same_report() {
    let server = Scripted::new(bad_reaction);
    let folder = Folder::new("resume");
    let titles = [
        "valid",
        "invalid",
        "not_json",
        "wrapped",
        "truncated",
        "refused",
        "too_long",
        "no_usage",
    ];
    let data = folder.collection(&titles);
    let answers = folder.path("answers.jsonl");
    let kept = ["--answers", answers.to_str().expect("a path")];
    ran(&server.url(), &data, &[&kept[..], &["--limit", "3"]].concat());
    // A run that is killed may leave half a line.
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&answers)
        .expect("the answers");
    file.write_all(b"{\"name\": \"val").expect("written");
    drop(file);
    let resumed = ran(&server.url(), &data, &kept);
    assert_eq!(server.titles().len(), titles.len(), "each is asked once");
    let whole = ran(&server.url(), &data, &[]);
    assert_eq!(lasting(&resumed), lasting(&whole));
}

/// A failure of the endpoint is no answer; the next run asks again.
#[test]
fn what_failed_is_asked_again_by_the_next_run() {
    let server = Scripted::new(|title, before| match (title, before) {
        ("flaky", 0) => refused("500 Internal Server Error", json!({"message": "no memory"})),
        ("refused", _) => refused("400 Bad Request", json!({"message": "no"})),
        _ => valid(),
    });
    let folder = Folder::new("again");
    let data = folder.collection(&["flaky", "refused", "valid"]);
    let answers = folder.path("answers.jsonl");
    let more = ["--retries", "0", "--answers", answers.to_str().expect("a path")];
    let first = ran(&server.url(), &data, &more);
    assert_eq!(
        (figure(&first, "failed"), figure(&first, "valid")),
        (&json!(1), &json!(1))
    );
    let second = ran(&server.url(), &data, &more);
    assert_eq!(
        (figure(&second, "failed"), figure(&second, "valid")),
        (&json!(0), &json!(2))
    );
    let third = ran(&server.url(), &data, &more);
    assert_eq!(lasting(&second), lasting(&third));
    assert_eq!(server.titles().len(), 4);
}

/// Two runs that write to one file would ask everything twice.
#[test]
fn a_file_of_answers_has_one_writer() {
    let folder = Folder::new("locked");
    let data = folder.collection(&["x"]);
    let answers = folder.path("answers.jsonl");
    let other = fs::File::create(&answers).expect("the answers");
    other.lock().expect("a lock");
    let more = ["--answers", answers.to_str().expect("a path")];
    let told = failure("http://127.0.0.1:9/v1", &data, &more).to_string();
    assert!(told.ends_with("another run is writing to this file"), "{told}");
}

#[test]
fn a_file_of_answers_is_not_mixed_with_other_settings() {
    let server = Scripted::new(|_, _| valid());
    let folder = Folder::new("mixed");
    let data = folder.collection(&["x"]);
    let answers = folder.path("answers.jsonl");
    let kept = ["--answers", answers.to_str().expect("a path")];
    ran(&server.url(), &data, &kept);
    let asked = server.titles().len();
    for (flag, value, expected) in [
        ("--temperature", "0.5", "--temperature is 0 and not 0.5"),
        ("--seed", "4", "--seed is 0 and not 4"),
        ("--max-tokens", "4", "--max-tokens is 1024 and not 4"),
        (
            "--constraint",
            "guided_json",
            "--constraint is json_schema and not guided_json",
        ),
    ] {
        let told = failure(&server.url(), &data, &[&kept[..], &[flag, value]].concat()).to_string();
        assert!(told.contains(expected), "{told}");
    }
    let mut other = args(&server.url(), &data, &kept);
    "other".clone_into(&mut other.model);
    let told = evaluate(&other).err().expect("a failure").to_string();
    assert!(told.contains("--model is m and not other"), "{told}");
    folder.collection(&["x", "y"]);
    let told = failure(&server.url(), &data, &kept).to_string();
    assert!(told.contains("--data is a file with the sum "), "{told}");
    assert_eq!(
        server.titles().len(),
        asked,
        "nothing is asked before the file is checked"
    );
}

#[test]
fn a_file_that_is_no_file_of_answers_is_left_alone() {
    let folder = Folder::new("foreign");
    let data = folder.collection(&["x"]);
    let url = "http://127.0.0.1:9/v1";
    let told = failure(url, &data, &["--answers", data.to_str().expect("a path")]).to_string();
    assert!(
        told.contains("data.jsonl, line 1: not a file of answers"),
        "{told}"
    );
    let answers = folder.path("answers.jsonl");
    let kept = ["--answers", answers.to_str().expect("a path"), "--limit", "0"];
    ran(url, &data, &kept);
    let header = fs::read_to_string(&answers).expect("a header");
    fs::write(&answers, format!("{header}{{}}\n")).expect("written");
    let told = failure(url, &data, &kept).to_string();
    assert!(told.contains("answers.jsonl, line 2: not an answer"), "{told}");
}

/// The same seed asks for the same in the same order; another one in another order.
#[test]
fn the_seed_decides_on_the_order_and_the_requests() {
    let folder = Folder::new("seed");
    let names: Vec<String> = (0..12).map(|it| it.to_string()).collect();
    let data = folder.collection(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let bodies = |seed: &str| {
        let server = Scripted::new(|_, _| valid());
        ran(&server.url(), &data, &["--seed", seed, "--concurrency", "1"]);
        let bodies = server.bodies.lock().expect("the bodies");
        bodies.clone()
    };
    let (first, again, other) = (bodies("1"), bodies("1"), bodies("2"));
    assert_eq!(first, again);
    let order = |bodies: &[Value]| bodies.iter().map(title).collect::<Vec<_>>();
    assert_ne!(order(&first), order(&other));
    let mut seeds: Vec<u64> = first.iter().filter_map(|body| body["seed"].as_u64()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 12);
}

#[test]
fn broken_data_is_named_before_anything_is_asked() {
    let server = Scripted::new(|_, _| valid());
    let folder = Folder::new("broken");
    let path = folder.path("data.jsonl");
    for (text, expected) in [
        (
            "{\"schema\": {}}\n{\"schema\"",
            "data.jsonl, line 2: EOF while parsing",
        ),
        (
            "{\"schemas\": {}}",
            "data.jsonl, line 1: neither `schema` nor `json_schema`",
        ),
        (
            "\n{\"json_schema\": \"{\"}",
            "data.jsonl, line 2: the text of the schema: EOF",
        ),
        ("{\"schema\": 3}", "data.jsonl, line 1: a schema is an object"),
        (
            "{\"name\": \"a\", \"schema\": true}\n{\"name\": \"a\", \"schema\": {}}",
            "data.jsonl, line 2: the name \"a\" is taken by",
        ),
        ("\n", "data.jsonl has no schemas"),
    ] {
        fs::write(&path, text).expect("written");
        let told = failure(&server.url(), &path, &[]).to_string();
        assert!(told.contains(expected), "{told}");
    }
    assert!(server.titles().is_empty());
    let data = folder.collection(&["x"]);
    let told = failure(&server.url(), &data, &["--only", "y"]).to_string();
    assert!(told.ends_with("has no schema of the name \"y\""), "{told}");
}

/// JSONSchemaBench comes as rows with schemas as texts, and as folders of files.
#[test]
fn the_layouts_of_jsonschemabench_are_read() {
    let server = Scripted::new(|_, _| valid());
    let folder = Folder::new("layouts");
    let rows = folder.path("rows.jsonl");
    fs::write(
        &rows,
        json!({"unique_id": "o1", "dataset": "Easy", "json_schema": "{\"title\": \"t\"}"}).to_string(),
    )
    .expect("written");
    let run = ran(&server.url(), &rows, &[]);
    assert_eq!(figure(&run, "by_split")["Easy"]["valid"], 1);
    let files = folder.path("files/Hard");
    fs::create_dir_all(&files).expect("a folder");
    fs::write(files.join("o2.json"), "{\"title\": \"u\"}").expect("written");
    fs::write(files.join("notes.txt"), "none").expect("written");
    let run = ran(&server.url(), &folder.path("files"), &["--only", "Hard/o2"]);
    assert_eq!(figure(&run, "by_split")["Hard"]["valid"], 1);
    assert_eq!(run.only.as_deref(), Some("{\"a\": 1}"));
}

#[test]
fn commands_can_be_pasted() {
    assert_eq!(super::quoted("a/b-1.jsonl"), "a/b-1.jsonl");
    assert_eq!(super::quoted("it's"), "'it'\\''s'");
    assert_eq!(super::quoted(""), "''");
}

/// A wrong answer is a result and no failure of the run, and an answer that nothing constrained may be no
/// JSON.
#[test]
fn tasks_are_judged_by_what_is_right() {
    let folder = Folder::new("tasks");
    let task = |name: &str, number: i32| {
        let schema = json!({"title": name, "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let answer = json!({"number": number, "at": "/n"});
        let task = json!({"name": name, "kind": "sums", "prompt": name, "schema": schema, "answer": answer});
        format!("{task}\n")
    };
    let tasks = folder.path("tasks.jsonl");
    fs::write(&tasks, task("one", 1) + &task("two", 2)).expect("written");
    let tasks = tasks.to_str().expect("a path");
    for (arm, text) in [("constrained", "{\"n\": 1}"), ("free", "It is 1.")] {
        let server = Scripted::new(move |_, _| streamed(text, "stop", &[USAGE]));
        let url = server.url();
        let words = [
            "generate",
            "--endpoint",
            &url,
            "--model",
            "m",
            "--tasks",
            tasks,
            "--arm",
            arm,
        ];
        let run = evaluate(&Program::parse_from(words).args).expect("a run");
        assert!(!run.failed, "{arm}: {:?}", run.report.failures);
        let [wrong] = &run.report.failures[..] else {
            panic!("{arm}: {:?}", run.report.failures);
        };
        assert_eq!(wrong.case, format!("two ({arm})"));
        assert!(wrong.command.contains(&format!("--tasks {tasks}")), "{wrong:?}");
        assert!(
            wrong.command.ends_with(&format!("--arm {arm} --only two")),
            "{wrong:?}"
        );
    }
}
