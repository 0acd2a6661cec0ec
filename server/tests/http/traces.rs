//! What a collector is told of requests: a collector of the test listens, and reads what comes.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lexiform_server::operate::otlp::periodic::Metrics;
use lexiform_server::operate::otlp::{Environment, Export, Flags};
use lexiform_server::operate::tls::{Certificate, ClientAuthority};
use lexiform_server::operate::traces::Traces;
use lexiform_server::routes::operations::exposition;
use lexiform_server::routes::state::Settings;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use serde_json::{Value, json};

use super::security::{certify, client_of};
use super::service::{PATIENCE, Service, chat, roomy, unhurried};

/// What a collector was sent.
struct Told {
    head: Vec<String>,
    body: Vec<u8>,
}

impl Told {
    fn has(&self, line: &str) -> bool {
        self.head.iter().any(|told| told == line)
    }

    /// The message, in the form that it has in JSON.
    fn message(&self) -> Value {
        let body = match self.has("content-encoding: gzip") {
            false => self.body.clone(),
            true => {
                let mut body = Vec::new();
                let mut reader = flate2::read::GzDecoder::new(&self.body[..]);
                reader.read_to_end(&mut body).expect("a compressed body");
                body
            }
        };
        if self.has("content-type: application/json") {
            return serde_json::from_slice(&body).expect("JSON");
        }
        assert!(
            self.has("content-type: application/x-protobuf"),
            "{:?}",
            self.head
        );
        let message = match self.head[0].contains("/v1/traces ") {
            true => serde_json::to_value(ExportTraceServiceRequest::decode(&body[..]).expect("traces")),
            false => serde_json::to_value(ExportMetricsServiceRequest::decode(&body[..]).expect("metrics")),
        };
        message.expect("JSON")
    }

    fn spans(&self) -> Vec<Value> {
        let message = self.message();
        let resource = &message["resourceSpans"][0];
        assert_eq!(
            attribute(&resource["resource"], "service.name"),
            json!({"stringValue": "lexiform"})
        );
        let spans = &resource["scopeSpans"][0]["spans"];
        spans.as_array().expect("spans").clone()
    }
}

/// Reads a message and answers with this status.
fn taken(stream: impl Read + Write, status: &str) -> Option<Told> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).ok()? > 0 && line.trim_end() != "" {
        head.push(std::mem::take(&mut line).trim_end().to_ascii_lowercase());
    }
    let length = head
        .iter()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
    reader.get_mut().write_all(answer.as_bytes()).ok()?;
    reader.get_mut().flush().ok()?;
    Some(Told { head, body })
}

/// A collector that takes messages, with this status.
fn listens(status: &'static str) -> (String, Receiver<Told>) {
    served_by(move |stream| taken(stream, status))
}

fn served_by(take: impl Fn(TcpStream) -> Option<Told> + Send + 'static) -> (String, Receiver<Told>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            if let Some(told) = take(stream.expect("a connection")) {
                let _ = sender.send(told);
            }
        }
    });
    (address.to_string(), receiver)
}

/// Takes traces, with this status, and hands on their spans.
fn collector(status: &'static str) -> (String, Receiver<Value>) {
    let (address, told) = listens(status);
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for told in told {
            assert_eq!(told.head[0], "post /otlp/v1/traces http/1.1");
            for span in told.spans() {
                let _ = sender.send(span);
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
    traced_by(&[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)])
}

/// A service whose collector is set by these variables.
fn traced_by(variables: &[(&str, &str)]) -> Service {
    let settings = Settings {
        traces: Arc::new(traces(variables)),
        ..Settings::default()
    };
    Service::operated(roomy(), settings, unhurried())
}

fn export(variables: &[(&str, &str)]) -> Export {
    Export::read(Flags::default(), &Environment::of(variables)).expect("valid variables")
}

fn traces(variables: &[(&str, &str)]) -> Traces {
    let export = export(variables);
    let collector = export.traces.expect("a collector");
    Traces::to(collector, export.service).expect("a thread")
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
    assert!(root["status"].is_null(), "{root}");
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
    assert!(
        root["parentSpanId"].as_str().unwrap_or_default().is_empty(),
        "{root}"
    );
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

/// Guards against traces that only a collector on the same machine takes: over TLS, with the certificate of
/// this client, headers and compression, as OpenTelemetry's variables say.
#[test]
fn a_collector_is_reached_over_tls() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = |name: &str| folder.join(format!("collector-{name}.pem"));
    let shown = |name: &str| path(name).display().to_string();
    certify(&path("cert"), &path("key"));
    certify(&path("other"), &path("other-key"));
    let (client, key) = client_of(&path("ca"));
    std::fs::write(path("client"), client.pem()).expect("a file");
    std::fs::write(path("client-key"), key.serialize_pem()).expect("a file");
    let certificate = Certificate::read(&path("cert"), &path("key")).expect("a certificate");
    let clients = ClientAuthority::read(&path("ca")).expect("an authority");
    let tls = Arc::new(certificate.config_for(clients).expect("a configuration"));
    let (address, told) = served_by(move |stream| {
        let connection = rustls::ServerConnection::new(tls.clone()).ok()?;
        taken(rustls::StreamOwned::new(connection, stream), "200 OK")
    });
    let port = address.rsplit(':').next().expect("a port");
    let endpoint = format!("https://localhost:{port}");
    let (root, client, key) = (shown("cert"), shown("client"), shown("client-key"));
    let mut variables = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", &root),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &client),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", &key),
        ("OTEL_EXPORTER_OTLP_HEADERS", "X-Tenant=a%20b"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
    ];
    let service = traced_by(&variables);
    assert_eq!(service.chat("echo x", json!({})).status, 200);
    let message = told.recv_timeout(PATIENCE).expect("a message");
    assert!(
        message.has("x-tenant: a b") && message.has("content-encoding: gzip"),
        "{:?}",
        message.head
    );
    assert_eq!(message.spans()[0]["name"], "POST /v1/chat/completions");
    service.until_metric("lexiform_traces_sent_total", 1);
    // Whoever is not who the certificate says gets nothing, and neither does it take from anybody.
    let other = shown("other");
    variables[1].1 = &other;
    let strangers = traced_by(&variables);
    assert_eq!(strangers.chat("echo x", json!({})).status, 200);
    strangers.until_metric("lexiform_traces_dropped_total", 1);
    let anonymous = traced_by(&[variables[0], ("OTEL_EXPORTER_OTLP_CERTIFICATE", &root)]);
    assert_eq!(anonymous.chat("echo x", json!({})).status, 200);
    anonymous.until_metric("lexiform_traces_dropped_total", 1);
}

/// A key that does not belong to its certificate is an error at the start.
#[test]
fn a_certificate_with_another_key_is_refused() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = |name: &str| folder.join(format!("collector-pair-{name}.pem"));
    certify(&path("cert"), &path("key"));
    certify(&path("other"), &path("other-key"));
    let (cert, key) = (
        path("cert").display().to_string(),
        path("other-key").display().to_string(),
    );
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://localhost"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", cert.as_str()),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &cert),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", &key),
    ];
    let refused = Export::read(Flags::default(), &Environment::of(&variables));
    let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("OTEL_EXPORTER_OTLP_CLIENT_KEY: "), "{error}");
}

#[test]
fn a_collector_may_read_json() {
    let (address, told) = listens("200 OK");
    let endpoint = format!("http://{address}");
    let service = traced_by(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
    ]);
    assert_eq!(service.chat("echo x", json!({})).status, 200);
    let message = told.recv_timeout(PATIENCE).expect("a message");
    assert!(message.has("content-type: application/json"));
    let root = &message.spans()[0];
    assert_eq!(root["name"], "POST /v1/chat/completions");
    assert_eq!(root["traceId"].as_str().map(str::len), Some(32), "{root}");
    assert!(nanos(root, "startTimeUnixNano") > 0);
}

/// What a collector is sent has the names and the values of /metrics.
#[test]
fn metrics_are_sent_as_they_are_served() {
    let (address, told) = listens("200 OK");
    let endpoint = format!("http://{address}/v1/metrics");
    let service = Service::start();
    assert_eq!(
        service.chat("echo x", json!({"guided_regex": "[a-z]+"})).status,
        200
    );
    service.until("nothing runs", |stats| stats.running == 0);
    let text = exposition(&service.app);
    let export = export(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &endpoint)]);
    let sent = text.clone();
    let metrics = Metrics::start(export.metrics.expect("a collector"), export.service, move || {
        sent.clone()
    });
    metrics.expect("a thread").close();
    let message = told.recv_timeout(PATIENCE).expect("a message").message();
    let sent = message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].clone();
    let sent = sent.as_array().expect("metrics");
    let served: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    for (name, kind) in &served {
        let prefix = format!("{name}{{");
        let series: Vec<&str> = text.lines().filter(|line| line.starts_with(&prefix)).collect();
        let found = sent.iter().find(|metric| metric["name"] == *name);
        if series.is_empty() && *kind != "histogram" {
            assert!(found.is_none(), "{name}");
            continue;
        }
        let found = found.unwrap_or_else(|| panic!("{name} was not sent"));
        let points = match *kind {
            "counter" => &found["sum"]["dataPoints"],
            "gauge" => &found["gauge"]["dataPoints"],
            _ => {
                let count = text
                    .lines()
                    .find(|line| line.starts_with(&format!("{name}_count{{")));
                let count = count.and_then(|line| line.rsplit(' ').next()).expect("a count");
                assert_eq!(found["histogram"]["dataPoints"][0]["count"], count, "{name}");
                continue;
            }
        };
        let points: Vec<f64> = points
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|point| point["asDouble"].as_f64())
            .collect();
        let values: Vec<f64> = series
            .iter()
            .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
            .collect();
        assert_eq!(points, values, "{name}");
        let labels = format!("{found}");
        assert!(labels.contains("model_name"), "{found}");
    }
    assert!(served.len() > 60, "{}", served.len());
}

/// Guards against requests, or an end of the program, that wait for a collector which takes a connection and
/// says nothing.
#[test]
fn a_collector_that_hangs_holds_up_neither_requests_nor_the_end() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let service = traced_by(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000"),
    ]);
    // More traces than are sent together and wait.
    for _ in 0..1300 {
        assert_eq!(service.chat("echo x", json!({"n": 0})).status, 400);
    }
    assert!(service.metric("lexiform_traces_dropped_total") > 0);
    assert_eq!(service.metric("lexiform_traces_sent_total"), 0);
    let begun = Instant::now();
    service.app.settings.traces.close();
    assert!(begun.elapsed() < Duration::from_secs(600));
}
