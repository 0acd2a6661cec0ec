//! What a client is told when a request fails: one envelope for every status, with all four keys that OpenAI's
//! clients read.
//!
//! ```text
//!   {"error": {"message", "type", "param", "code"}}        + "lexiform": {"diagnostics": […]} for a bad constraint
//! ```

use std::borrow::Cow;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use lexiform::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_engine::EngineError;

use crate::wire::error::{Body, Diagnostic, Envelope, Extension};

/// How many problems one answer lists; a hostile source could otherwise make the answer larger than the request.
const LISTED_PROBLEMS: usize = 10;
/// How many characters of each problem are shown.
const SHOWN_CHARS: usize = 400;

/// An error as the API tells it.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: &'static str,
    param: Option<String>,
    message: String,
    diagnostics: Vec<Diagnostic>,
    retry_after_seconds: Option<f64>,
    /// Whether clients that retry by themselves should, where the status alone would mislead them.
    should_retry: Option<bool>,
    allow: Option<&'static str>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            code,
            param: None,
            message: shortened(&message.into()).into_owned(),
            diagnostics: Vec::new(),
            retry_after_seconds: None,
            should_retry: None,
            allow: None,
        }
    }

    /// The request is wrong: 400.
    pub fn invalid(code: &'static str, param: Option<String>, message: impl Into<String>) -> Self {
        Self {
            param,
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", code, message)
        }
    }

    /// The body is not what the route reads: 400.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::invalid("invalid_json", None, message)
    }

    /// The model of the request is not served here: 404.
    pub fn unknown_model(name: &str) -> Self {
        let message = format!(
            "The model '{}' does not exist on this server; GET /v1/models lists them.",
            shortened(name)
        );
        let error = Self::new(
            StatusCode::NOT_FOUND,
            "invalid_request_error",
            "model_not_found",
            message,
        );
        Self {
            param: Some("model".to_owned()),
            ..error
        }
    }

    /// No grammar was registered under this identity, or it had to make room: 404.
    pub fn unknown_grammar(id: &str) -> Self {
        let message = format!(
            "There is no grammar '{}' here (any more); POST /v1/grammars registers it.",
            shortened(id)
        );
        let status = StatusCode::NOT_FOUND;
        Self {
            param: Some("grammar_id".to_owned()),
            ..Self::new(status, "invalid_request_error", "grammar_not_found", message)
        }
    }

    /// An independent check refuted the answer: 500.
    pub fn refuted() -> Self {
        let message = "The answer did not stand up to an independent check and is withheld.";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(status, "server_error", "invalid_output", message)
    }

    /// No such route: 404.
    pub fn unknown_route(method: &str, path: &str) -> Self {
        let message = format!("There is nothing at {method} {}.", shortened(path));
        Self::new(
            StatusCode::NOT_FOUND,
            "invalid_request_error",
            "not_found",
            message,
        )
    }

    /// The route exists, but not for this method: 405.
    pub fn wrong_method(method: &str, path: &str, allow: &'static str) -> Self {
        let message = format!(
            "{method} is not allowed at {}; allowed: {allow}.",
            shortened(path)
        );
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Self {
            allow: Some(allow),
            ..Self::new(status, "invalid_request_error", "method_not_allowed", message)
        }
    }

    /// The body is larger than the limit: 413.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("The request body is larger than the limit of {limit} bytes.");
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            "request_too_large",
            message,
        )
    }

    /// The queue is full: 429, with the time after which another try makes sense.
    pub fn queue_full(limit: usize) -> Self {
        let message = format!("The queue is full ({limit} requests are waiting). Try again shortly.");
        let error = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limit_error",
            "queue_full",
            message,
        );
        Self {
            retry_after_seconds: Some(1.0),
            ..error
        }
    }

    /// Somebody who asks whether there is room is told that there is none: 503, so that routers ask elsewhere.
    pub fn overloaded() -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self {
            retry_after_seconds: Some(1.0),
            ..Self::new(status, "server_error", "overloaded", "The queue is full.")
        }
    }

    /// Prompts wait that are too long together: 429.
    pub fn queue_of_tokens_full(limit: usize) -> Self {
        let message = format!("Prompts of up to {limit} tokens may wait together. Try again shortly.");
        Self {
            message,
            ..Self::queue_full(0)
        }
    }

    /// Nobody whom we know asks: 401.
    pub fn unauthorized(message: &str) -> Self {
        let status = StatusCode::UNAUTHORIZED;
        Self::new(status, "authentication_error", "invalid_api_key", message)
    }

    /// The owner of a key asks too much: 429.
    pub fn rate_limit(what: &str, seconds: f64) -> Self {
        let message = format!("Your limit of {what} is reached. Try again in {seconds:.1} s.");
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self {
            retry_after_seconds: Some(seconds),
            ..Self::new(status, "rate_limit_error", "rate_limit_exceeded", message)
        }
    }

    /// The answer took longer than it may: 408. To wait in vain and to wait again are different things, so clients
    /// are told whether to.
    pub fn timed_out(what: &str, seconds: f64, retry: bool) -> Self {
        let message = format!("The request {what} for more than {seconds} s and was given up.");
        let status = StatusCode::REQUEST_TIMEOUT;
        Self {
            should_retry: Some(retry),
            ..Self::new(status, "timeout_error", "request_timeout", message)
        }
    }

    /// Reading the request and compiling its constraint took too long: 408. The same again would take as long.
    pub fn compile_timed_out(seconds: f64) -> Self {
        let message = format!(
            "Reading the request and compiling its constraint took more than {seconds} s; it was given up."
        );
        let status = StatusCode::REQUEST_TIMEOUT;
        Self {
            should_retry: Some(false),
            ..Self::new(status, "timeout_error", "grammar_compile_timeout", message)
        }
    }

    /// The answer to a request whose client has left; nobody reads it.
    pub fn nobody_waits() -> Self {
        Self::internal()
    }

    /// There is no stream of this identity, or none any more: 404.
    pub fn unknown_stream(id: &str) -> Self {
        let message = format!("There is no stream '{}' here, or it is over.", shortened(id));
        Self::new(
            StatusCode::NOT_FOUND,
            "invalid_request_error",
            "stream_not_found",
            message,
        )
    }

    /// So many streams are kept that there is no room for more: 429.
    pub fn no_room_for_streams() -> Self {
        let message = "No more of this stream can be kept, so it could not be resumed.";
        let error = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limit_error",
            "streams_full",
            message,
        );
        Self {
            retry_after_seconds: Some(5.0),
            ..error
        }
    }

    /// The server is going down: 503.
    pub fn shutting_down() -> Self {
        let message = "The server is shutting down.";
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "server_error",
            "shutting_down",
            message,
        );
        Self {
            retry_after_seconds: Some(5.0),
            ..error
        }
    }

    /// Something broke on our side: 500. What exactly goes to the log, not to the client.
    pub fn internal() -> Self {
        let message = "The server failed while it handled this request. The request can be sent again.";
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            "internal_error",
            message,
        )
    }

    /// The engine failed while it wrote the answer.
    pub fn engine(error: &EngineError) -> Self {
        match error {
            EngineError::AttemptsExhausted { .. } => {
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                let message = format!("{error}; the local law always answers");
                Self::new(status, "invalid_request_error", "attempts_exhausted", message)
            }
            EngineError::OutOfTokens { .. } => {
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                let message = format!("{error}, and on_budget is error");
                Self {
                    param: Some("max_tokens".to_owned()),
                    ..Self::new(status, "invalid_request_error", "budget_exceeded", message)
                }
            }
            EngineError::TooExpensive { .. } => {
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                Self::new(
                    status,
                    "invalid_request_error",
                    "grammar_too_expensive",
                    error.to_string(),
                )
            }
            EngineError::Stopped => Self::shutting_down(),
            _ => {
                tracing::error!("{error}");
                Self::internal()
            }
        }
    }

    /// A 4xx that the HTTP layer found before any route was reached.
    pub fn transport(status: StatusCode, message: impl Into<String>) -> Self {
        let code = if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            "unsupported_media_type"
        } else {
            "bad_request"
        };
        Self::new(status, "invalid_request_error", code, message)
    }

    /// A constraint that does not compile: 400 with every problem and its place.
    pub fn constraint(what: &Subject<'_>, error: &CompileError) -> Self {
        Self::constraints(&[(*what, error)])
    }

    /// Several constraints with something wrong in each: 400 with every problem, its field and its place.
    pub fn constraints(all: &[(Subject<'_>, &CompileError)]) -> Self {
        let problems = |&(what, error)| {
            let error: &CompileError = error;
            error.problems.iter().map(move |problem| (what, problem))
        };
        let problems: Vec<(Subject<'_>, &Problem)> = all.iter().flat_map(problems).collect();
        let Some((what, first)) = problems.first() else {
            let param = all.first().map(|(what, _)| what.param.to_owned());
            return Self::invalid("invalid_grammar", param, "");
        };
        let mut message = what.message(first);
        let more = problems.len() - 1;
        if more > 0 {
            message.push_str(&format!(" (and {more} more, see error.lexiform.diagnostics)"));
        }
        let listed = problems.iter().take(LISTED_PROBLEMS);
        let listed = listed.map(|(what, problem)| Diagnostic {
            param: Some(shortened(what.param).into_owned()),
            ..diagnostic(problem, "error")
        });
        Self {
            diagnostics: listed.collect(),
            ..Self::invalid(what.code(first.kind), Some(what.param.to_owned()), message)
        }
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The machine-readable reason.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The JSON that clients read.
    pub fn envelope(&self) -> Envelope<'_> {
        let lexiform = (!self.diagnostics.is_empty()).then_some(Extension {
            diagnostics: self.diagnostics.as_slice(),
        });
        Envelope {
            error: Body {
                message: &self.message,
                kind: self.kind,
                param: self.param.as_deref(),
                code: self.code,
                lexiform,
            },
        }
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.status.as_u16(), self.code, self.message)
    }
}

impl std::error::Error for ApiError {}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);
        if let Some(seconds) = self.retry_after_seconds {
            response.insert_header((header::RETRY_AFTER, format!("{:.0}", seconds.ceil())));
            let millis = HeaderName::from_static("retry-after-ms");
            response.insert_header((millis, format!("{:.0}", (seconds * 1000.0).ceil())));
        }
        if let Some(retry) = self.should_retry {
            let name = HeaderName::from_static("x-should-retry");
            response.insert_header((name, retry.to_string()));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        if let Some(allow) = self.allow {
            response.insert_header((header::ALLOW, HeaderValue::from_static(allow)));
        }
        let mut response = response.json(self.envelope());
        response.extensions_mut().insert(ErrorCode(self.code));
        response
    }
}

/// The reason of a refusal, for those who count answers.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCode(pub &'static str);

/// What a constraint of a request is, for the words of an error about it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The field it came from, as a path: `response_format.json_schema.schema`.
    pub param: &'a str,
    /// The name that the client gave it, where the field has one.
    pub name: Option<&'a str>,
    /// Whether it is a JSON Schema.
    pub is_schema: bool,
}

impl Subject<'_> {
    fn code(&self, kind: ProblemKind) -> &'static str {
        match kind {
            ProblemKind::Unsupported | ProblemKind::Narrowed if self.is_schema => "unsupported_keyword",
            ProblemKind::Unsatisfiable => "unsatisfiable_schema",
            ProblemKind::Limit => "grammar_too_complex",
            ProblemKind::Cancelled => "grammar_compile_timeout",
            _ if self.is_schema => "invalid_json_schema",
            _ => "invalid_grammar",
        }
    }

    fn message(&self, problem: &Problem) -> String {
        let text = shortened(&problem.message).into_owned();
        match (&problem.place, self.is_schema) {
            (Place::Pointer(pointer), true) => {
                let name = shortened(self.name.unwrap_or("schema")).into_owned();
                let field = self.param.split('.').next().unwrap_or(self.param);
                format!(
                    "Invalid schema for {field} '{name}': In context={}, {text}",
                    context(pointer)
                )
            }
            (place, _) => format!("Invalid constraint in {}: {place}: {text}", self.param),
        }
    }
}

/// A JSON pointer in the form that OpenAI's messages use: `('properties', 'a')`.
fn context(pointer: &str) -> String {
    let parts: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|part| format!("'{}'", part.replace("~1", "/").replace("~0", "~")))
        .collect();
    match parts.as_slice() {
        [one] => shortened(&format!("({one},)")).into_owned(),
        _ => shortened(&format!("({})", parts.join(", "))).into_owned(),
    }
}

fn diagnostic(problem: &Problem, severity: &'static str) -> Diagnostic {
    let path = match &problem.place {
        Place::Pointer(pointer) => pointer.clone(),
        place => place.to_string(),
    };
    let keyword = match &problem.place {
        Place::Pointer(pointer) => pointer.rsplit('/').next().map(str::to_owned),
        _ => None,
    };
    Diagnostic {
        param: None,
        path: shortened(&path).into_owned(),
        keyword: keyword.filter(|word| !word.is_empty()),
        severity,
        kind: kind_name(problem.kind),
        message: shortened(&problem.message).into_owned(),
    }
}

/// A problem or a finding, as clients are told of it.
pub struct Diagnosis(Diagnostic);

impl Diagnosis {
    /// Something that stops a compile.
    pub fn error(problem: &Problem) -> Self {
        Self(diagnostic(problem, "error"))
    }

    /// Something that does not.
    pub fn warning(problem: &Problem) -> Self {
        Self(diagnostic(problem, "warning"))
    }

    /// Its JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}

fn kind_name(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Syntax => "syntax",
        ProblemKind::Invalid => "invalid",
        ProblemKind::Unsupported => "unsupported",
        ProblemKind::Narrowed => "narrowed",
        ProblemKind::Reference => "reference",
        ProblemKind::Unsatisfiable => "unsatisfiable",
        ProblemKind::Limit => "limit",
        ProblemKind::Cancelled => "cancelled",
    }
}

/// At most `SHOWN_CHARS` characters of a text that a client sent.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(error: &ApiError) -> serde_json::Value {
        serde_json::to_value(error.envelope()).expect("an envelope is plain JSON")
    }

    #[test]
    fn every_envelope_has_the_four_keys() {
        for error in [
            ApiError::internal(),
            ApiError::unknown_model("x"),
            ApiError::too_large(1),
        ] {
            let body = envelope(&error);
            for key in ["message", "type", "param", "code"] {
                assert!(body["error"].get(key).is_some(), "{key} is missing in {body}");
            }
        }
    }

    #[test]
    fn a_schema_problem_is_told_with_its_context_and_as_a_diagnostic() {
        let problem = Problem::at_pointer(
            ProblemKind::Unsupported,
            "/properties/a/not",
            "'not' is not supported",
        );
        let subject = Subject {
            param: "response_format.json_schema.schema",
            name: Some("P"),
            is_schema: true,
        };
        let body = envelope(&ApiError::constraint(&subject, &CompileError::one(problem)));
        assert_eq!(body["error"]["code"], "unsupported_keyword");
        assert_eq!(body["error"]["param"], "response_format.json_schema.schema");
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.starts_with(
                "Invalid schema for response_format 'P': In context=('properties', 'a', 'not'), "
            )
        );
        assert_eq!(
            body["error"]["lexiform"]["diagnostics"][0]["path"],
            "/properties/a/not"
        );
    }

    #[test]
    fn what_a_client_sent_is_never_echoed_at_length() {
        let body = envelope(&ApiError::unknown_model(&"é".repeat(100_000)));
        assert!(body["error"]["message"].as_str().unwrap_or_default().len() < 2_000);
    }
}
