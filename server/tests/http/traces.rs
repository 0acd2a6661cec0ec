//! What a collector is told of requests: a collector of the test listens, and reads what comes.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use lexiform_server::operate::traces::Traces;
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use super::service::{PATIENCE, Service, chat, roomy, unhurried};

/// Takes messages, with this status, and hands on their spans.
fn collector(status: &'static str) -> (String, Receiver<Value>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.expect("a connection"));
            let (mut head, mut line) = (Vec::new(), String::new());
            while reader.read_line(&mut line).is_ok_and(|_| line.trim_end() != "") {
                head.push(std::mem::take(&mut line).trim_end().to_ascii_lowercase());
            }
            assert_eq!(head[0], "post /otlp/v1/traces http/1.1");
            assert!(
                head.contains(&"content-type: application/json".to_owned()),
                "{head:?}"
            );
            let length = head
                .iter()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.expect("a length")];
            reader.read_exact(&mut body).expect("a body");
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
            reader
                .get_mut()
                .write_all(answer.as_bytes())
                .expect("the answer is sent");
            let message: Value = serde_json::from_slice(&body).expect("JSON");
            let resource = &message["resourceSpans"][0];
            assert_eq!(
                attribute(&resource["resource"], "service.name"),
                json!({"stringValue": "lexiform"})
            );
            for span in resource["scopeSpans"][0]["spans"].as_array().expect("spans") {
                let _ = sender.send(span.clone());
            }
        }
    });
    (format!("http://{address}/otlp/"), receiver)
}

fn attribute(of: &Value, key: &str) -> Value {
    let attributes = of["attributes"].as_array().expect("attributes");
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map_or(Value::Null, |attribute| attribute["value"].clone())
}

fn traced(endpoint: &str) -> Service {
    let endpoint = endpoint.parse().expect("an endpoint");
    let settings = Settings {
        traces: Arc::new(Traces::to(endpoint).expect("a thread")),
        ..Settings::default()
    };
    Service::operated(roomy(), settings, unhurried())
}

/// The spans of the next request, by name.
fn spans(told: &Receiver<Value>, count: usize) -> BTreeMap<String, Vec<Value>> {
    let mut spans: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for _ in 0..count {
        let span = told.recv_timeout(PATIENCE).expect("a span");
        let name = span["name"].as_str().expect("a name").to_owned();
        spans.entry(name).or_default().push(span);
    }
    spans
}

fn nanos(span: &Value, field: &str) -> u64 {
    let text = span[field].as_str().expect("numbers of 64 bits are strings");
    text.parse().expect("a number")
}

#[test]
fn a_trace_tells_how_a_request_spent_its_time() {
    let (endpoint, told) = collector("200 OK");
    let service = traced(&endpoint);
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\ntraceparent: 00-{trace}-{parent}-01"
    );
    let secret = "echo my own secret";
    let body = chat(
        secret,
        json!({"n": 2, "guided_regex": "[a-z ]+", "max_tokens": 40}),
    )
    .to_string();
    let answer = service.exchange(&head, body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    // The request, three parts of its own, and three of each sample.
    let spans = spans(&told, 1 + 3 + 2 * 3);
    let names: Vec<(&str, usize)> = spans
        .iter()
        .map(|(name, all)| (name.as_str(), all.len()))
        .collect();
    assert_eq!(
        names,
        [
            ("POST /v1/chat/completions", 1),
            ("compile", 1),
            ("decode", 2),
            ("finish", 1),
            ("prefill", 2),
            ("queue", 2),
            ("template", 1)
        ]
    );
    let root = &spans["POST /v1/chat/completions"][0];
    assert_eq!(
        (&root["parentSpanId"], &root["kind"]),
        (&json!(parent), &json!(2))
    );
    assert_eq!(
        attribute(root, "lexiform.verdict"),
        json!({"stringValue": "answered"})
    );
    let grammar = attribute(root, "lexiform.grammar");
    assert!(
        grammar["stringValue"]
            .as_str()
            .is_some_and(|id| id.starts_with("gr_")),
        "{root}"
    );
    assert!(root.get("status").is_none());
    for span in spans.values().flatten() {
        assert_eq!(span["traceId"], trace);
        assert_eq!(attribute(span, "lexiform.grammar"), grammar);
        let (from, to) = (nanos(span, "startTimeUnixNano"), nanos(span, "endTimeUnixNano"));
        assert!(
            from <= to && nanos(root, "startTimeUnixNano") <= from,
            "{span} {root}"
        );
        assert!(to <= nanos(root, "endTimeUnixNano"), "{span} {root}");
        if span != root {
            assert_eq!(span["parentSpanId"], root["spanId"]);
        }
        assert!(!span.to_string().contains("secret"), "{span}");
    }
    let samples: Vec<Value> = spans["decode"]
        .iter()
        .map(|span| attribute(span, "lexiform.sample"))
        .collect();
    assert!(samples.contains(&json!({"intValue": "0"})) && samples.contains(&json!({"intValue": "1"})));
    for (first, then) in [
        ("template", "compile"),
        ("queue", "prefill"),
        ("prefill", "decode"),
    ] {
        let (first, then) = (&spans[first][0], &spans[then][0]);
        assert!(
            nanos(first, "endTimeUnixNano") <= nanos(then, "startTimeUnixNano"),
            "{first} {then}"
        );
    }
    service.until_metric("lexiform_traces_sent_total", 1);
}

#[test]
fn refused_requests_are_told_and_traces_that_nobody_keeps_are_not() {
    let (endpoint, told) = collector("202 Accepted");
    let service = traced(&endpoint);
    let unsampled = "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\n\
                     traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    assert_eq!(
        service
            .exchange(unsampled, chat("echo x", json!({})).to_string().as_bytes())
            .status,
        200
    );
    assert_eq!(service.chat("echo x", json!({"n": 0})).status, 400);
    let spans = spans(&told, 1);
    let root = &spans["POST /v1/chat/completions"][0];
    assert_eq!(root["status"], json!({"code": 2, "message": "invalid_value"}));
    assert!(root.get("parentSpanId").is_none());
    assert_ne!(root["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    let body = json!({"model": "m", "input": "echo x", "questions": [{"type": "predicate", "instructions": "yes?"}]});
    assert_eq!(service.post("/v1/decisions", &body.to_string()).status, 200);
    let told = self::spans(&told, 1);
    assert_eq!(
        attribute(&told["POST /v1/decisions"][0], "lexiform.verdict"),
        json!({"stringValue": "answered"})
    );
}

/// Guards against requests that suffer because nobody takes their traces.
#[test]
fn a_collector_that_is_not_there_or_refuses_costs_traces_alone() {
    let unused = TcpListener::bind(("127.0.0.1", 0))
        .expect("a free port")
        .local_addr()
        .expect("an address");
    let (refusing, _told) = collector("503 Service Unavailable");
    for endpoint in [format!("http://{unused}"), refusing] {
        let service = traced(&endpoint);
        assert_eq!(service.chat("echo x", json!({})).status, 200, "{endpoint}");
        service.until_metric("lexiform_traces_dropped_total", 1);
        assert_eq!(service.metric("lexiform_traces_sent_total"), 0);
    }
}
