//! The messages of OpenTelemetry's protocol, OTLP: traces here, metrics in `metrics`.

pub mod metrics;

use opentelemetry::{SpanId, TraceId};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{self as proto, ResourceSpans, ScopeSpans, Status};
use prost::Message;
use serde::Serialize;
use serde_json::Value;

use crate::wire::response::FINGERPRINT;

/// A message of the protocol.
pub trait Outgoing: Message + Serialize {}

impl<M: Message + Serialize> Outgoing for M {}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Protocol buffers.
    Protobuf,
    /// JSON.
    Json,
}

impl Encoding {
    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Encoding::Protobuf => "application/x-protobuf",
            Encoding::Json => "application/json",
        }
    }

    /// Writes a message.
    ///
    /// # Errors
    /// Fails if the message has no form in JSON.
    pub fn encode(self, message: &impl Outgoing) -> serde_json::Result<Vec<u8>> {
        match self {
            Encoding::Protobuf => Ok(message.encode_to_vec()),
            Encoding::Json => serde_json::to_vec(message),
        }
    }
}

/// What this service says of itself in every message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service(Vec<(String, String)>);

impl Service {
    /// Creates a description with these attributes.
    pub fn new(attributes: Vec<(String, String)>) -> Self {
        Self(attributes)
    }

    fn resource(&self) -> Resource {
        let text = |(key, value): &(String, String)| attribute(key, Any::StringValue(value.clone()));
        Resource {
            attributes: self.0.iter().map(text).collect(),
            ..Resource::default()
        }
    }
}

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
    /// The identity of the trace.
    pub id: TraceId,
    /// The client's span that the request belongs to.
    pub parent: Option<SpanId>,
}

/// The spans of a trace, ready to be sent.
#[derive(Debug)]
pub struct Encoded(Vec<proto::Span>);

/// Encodes a trace with the line of the request's account, which contains neither prompts nor answers.
pub fn encoded(trace: &Trace, line: &Value) -> Encoded {
    let path = line["path"].as_str().unwrap_or_default();
    let verdict = line["verdict"].as_str().unwrap_or_default();
    let mut root = span(trace, &trace.root, format!("POST {path}"), SpanKind::Server);
    root.attributes = attributes(line);
    if let Some(parent) = trace.parent {
        root.parent_span_id = parent.to_bytes().to_vec();
    }
    if verdict != "answered" {
        root.status = Some(Status {
            code: StatusCode::Error.into(),
            message: verdict.to_owned(),
        });
    }
    let grammar = attributes(line).into_iter();
    let grammar: Vec<KeyValue> = grammar.filter(|known| known.key == "lexiform.grammar").collect();
    let mut spans = vec![root];
    spans.extend(trace.parts.iter().map(|part| {
        let mut inner = span(trace, part, part.name.to_owned(), SpanKind::Internal);
        inner.parent_span_id = trace.root.id.to_be_bytes().to_vec();
        inner.attributes.clone_from(&grammar);
        if let Some(sample) = part.sample.and_then(|sample| i64::try_from(sample).ok()) {
            inner
                .attributes
                .push(attribute("lexiform.sample", Any::IntValue(sample)));
        }
        inner
    }));
    Encoded(spans)
}

/// Returns one message for several traces.
pub fn message(service: &Service, traces: Vec<Encoded>) -> ExportTraceServiceRequest {
    let spans = ScopeSpans {
        scope: Some(scope()),
        spans: traces.into_iter().flat_map(|trace| trace.0).collect(),
        ..ScopeSpans::default()
    };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(service.resource()),
            scope_spans: vec![spans],
            ..ResourceSpans::default()
        }],
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: FINGERPRINT.to_owned(),
        ..InstrumentationScope::default()
    }
}

fn span(trace: &Trace, span: &Span, name: String, kind: SpanKind) -> proto::Span {
    proto::Span {
        trace_id: trace.id.to_bytes().to_vec(),
        span_id: span.id.to_be_bytes().to_vec(),
        name,
        kind: kind.into(),
        start_time_unix_nano: span.from,
        end_time_unix_nano: span.to,
        ..proto::Span::default()
    }
}

/// Converts the fields of an object to attributes with our prefix.
fn attributes(object: &Value) -> Vec<KeyValue> {
    let fields = object.as_object().into_iter().flatten();
    let attribute = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::Null => return None,
            Value::String(text) => Any::StringValue(text.clone()),
            Value::Bool(flag) => Any::BoolValue(*flag),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => Any::IntValue(number),
                (None, Some(number)) => Any::DoubleValue(number),
                (None, None) => Any::StringValue(number.to_string()),
            },
            other => Any::StringValue(other.to_string()),
        };
        Some(attribute(&format!("lexiform.{key}"), value))
    };
    fields.filter_map(attribute).collect()
}

fn attribute(key: &str, value: Any) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
