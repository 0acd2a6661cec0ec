//! Traces in the JSON of OTLP 1.x: 64-bit numbers as strings, identities as hexadecimal digits.

use serde_json::{Map, Value, json};

use crate::wire::response::FINGERPRINT;

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The name of the step.
    pub name: &'static str,
    /// The sample that the step was done for.
    pub sample: Option<usize>,
    /// The start time, in nanoseconds since 1970.
    pub from: u64,
    /// The end time.
    pub to: u64,
    /// The identity of the span in the protocol.
    pub id: u64,
}

/// A request and its parts.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The whole request.
    pub root: Span,
    /// The parts of the request.
    pub parts: Vec<Span>,
    /// The identity of the trace, in hexadecimal digits.
    pub id: String,
    /// The client's span that the request belongs to, in hexadecimal digits.
    pub parent: Option<String>,
}

/// The kinds of spans: the server's side of a call, and internal work.
const SERVER: u8 = 2;
const INTERNAL: u8 = 1;
/// The status of a span that failed.
const ERROR: u8 = 2;

/// The spans of a trace, ready to be sent.
#[derive(Debug)]
pub struct Encoded(Vec<Value>);

/// Encodes a trace with the line of the request's account, which contains neither prompts nor answers.
pub fn encoded(trace: &Trace, line: &Value) -> Encoded {
    let path = line["path"].as_str().unwrap_or_default();
    let verdict = line["verdict"].as_str().unwrap_or_default();
    let mut root = span(trace, &trace.root, format!("POST {path}"), SERVER);
    root["attributes"] = attributes(line);
    if let Some(parent) = &trace.parent {
        root["parentSpanId"] = json!(parent);
    }
    if verdict != "answered" {
        root["status"] = json!({"code": ERROR, "message": verdict});
    }
    let part = |part: &Span| {
        let mut json = span(trace, part, part.name.to_owned(), INTERNAL);
        json["parentSpanId"] = json!(format!("{:016x}", trace.root.id));
        let mut about = Map::new();
        if let Some(sample) = part.sample {
            about.insert("sample".to_owned(), json!(sample));
        }
        if !line["grammar"].is_null() {
            about.insert("grammar".to_owned(), line["grammar"].clone());
        }
        json["attributes"] = attributes(&Value::Object(about));
        json
    };
    let mut spans: Vec<Value> = trace.parts.iter().map(part).collect();
    spans.insert(0, root);
    Encoded(spans)
}

/// Returns one message for several traces.
pub fn message(traces: Vec<Encoded>) -> String {
    let spans: Vec<Value> = traces.into_iter().flat_map(|trace| trace.0).collect();
    let service = json!([{"key": "service.name", "value": {"stringValue": "lexiform"}},
                         {"key": "service.version", "value": {"stringValue": env!("CARGO_PKG_VERSION")}}]);
    json!({"resourceSpans": [{"resource": {"attributes": service},
           "scopeSpans": [{"scope": {"name": FINGERPRINT}, "spans": spans}]}]})
    .to_string()
}

fn span(trace: &Trace, span: &Span, name: String, kind: u8) -> Value {
    json!({"traceId": trace.id, "spanId": format!("{:016x}", span.id), "name": name, "kind": kind,
           "startTimeUnixNano": span.from.to_string(), "endTimeUnixNano": span.to.to_string()})
}

/// Converts the fields of an object to attributes with our prefix.
fn attributes(object: &Value) -> Value {
    let fields = object.as_object().into_iter().flatten();
    let attribute = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::Null => return None,
            Value::String(text) => json!({"stringValue": text}),
            Value::Bool(flag) => json!({"boolValue": flag}),
            Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
            Value::Number(number) => json!({"intValue": number.to_string()}),
            other => json!({"stringValue": other.to_string()}),
        };
        Some(json!({"key": format!("lexiform.{key}"), "value": value}))
    };
    fields.filter_map(attribute).collect()
}
