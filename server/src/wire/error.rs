//! Errors of the API, as clients receive them: one envelope for every status, with all four keys that
//! OpenAI's clients read.
//!
//! ```text
//!   {"error": {"message", "type", "param", "code"}}        + "lexiform": {"diagnostics": […]} for a bad constraint
//! ```
//!
//! `subject` describes the problems of a constraint, `failed` the failures of valid requests, `access`
//! what the API key of a request does not allow, `models` the models that cannot answer now, `upstream` the
//! errors of a gateway.

mod access;
pub mod envelope;
mod failed;
mod models;
mod shorten;
mod subject;
mod upstream;

use actix_web::body::BoxBody;
use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use lexiform::error::{CompileError, Problem, ProblemKind};

pub use self::shorten::shortened;
use self::subject::diagnostic;
pub use self::subject::{Diagnosis, Subject};
use crate::wire::error::envelope::{Body, Diagnostic, Envelope, Extension};

/// The maximum number of problems in one answer; a hostile source could otherwise make the answer larger than
/// the request.
const LISTED_PROBLEMS: usize = 10;
/// An error of the API.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: &'static str,
    param: Option<String>,
    message: String,
    diagnostics: Vec<Diagnostic>,
    retry_after_seconds: Option<f64>,
    /// `true` if clients that retry automatically should do so, where the status alone would mislead them.
    should_retry: Option<bool>,
    allow: Option<&'static str>,
    /// `true` if the connection is closed after the answer: what the client still sends is not read.
    closes: bool,
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
            closes: false,
        }
    }

    /// The request is invalid: 400.
    pub fn invalid(code: &'static str, param: Option<String>, message: impl Into<String>) -> Self {
        Self {
            param,
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", code, message)
        }
    }

    /// The body is not in the format of the route: 400.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::invalid("invalid_json", None, message)
    }

    /// The model of the request is not served here: 404.
    pub fn unknown_model(name: &str, models: Vec<&str>) -> Self {
        let message = format!(
            "The model '{}' does not exist on this server; it serves {}.",
            shortened(name),
            models.join(", ")
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

    /// No grammar was registered under this identity, or it was evicted: 404.
    pub fn unknown_grammar(id: &str) -> Self {
        let message = format!(
            "Grammar '{}' is not registered or was evicted; register it with POST /v1/grammars.",
            shortened(id)
        );
        let status = StatusCode::NOT_FOUND;
        Self {
            param: Some("grammar_id".to_owned()),
            ..Self::new(status, "invalid_request_error", "grammar_not_found", message)
        }
    }

    /// The operator has not allowed a callback of this name: 400.
    pub fn unknown_callback(param: &str, name: &str, names: &[&str]) -> Self {
        let known = match names.is_empty() {
            true => "this service has no callbacks, which its operator allows with --callback".to_owned(),
            false => format!("the callbacks of this service are {}", names.join(", ")),
        };
        let name = shortened(name);
        let message = format!("{param}: there is no callback '{name}'; {known}.");
        Self::invalid("invalid_value", Some(param.to_owned()), message)
    }

    /// Attributes the error to this field.
    pub fn about(self, param: &str) -> Self {
        Self {
            param: Some(param.to_owned()),
            ..self
        }
    }

    /// Moves the error into this object, if it is about one of these fields of the object.
    pub fn inside(mut self, object: &str, fields: &[&str]) -> Self {
        if let Some(param) = self.param.take() {
            let is_inside = fields.contains(&param.as_str());
            self.param = Some(if is_inside {
                format!("{object}.{param}")
            } else {
                param
            });
        }
        self
    }

    /// An independent check found the answer invalid: 500.
    pub fn refuted() -> Self {
        let message = "The answer failed an independent validation and is withheld.";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(status, "server_error", "invalid_output", message)
    }

    /// There is no such route: 404.
    pub fn unknown_route(method: &str, path: &str) -> Self {
        let message = format!("There is no route {method} {}.", shortened(path));
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
            "{method} is not allowed for {}; allowed methods: {allow}.",
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

    /// The body did not arrive in time: 408.
    pub fn body_timed_out(seconds: f64) -> Self {
        let message = format!("The request body did not arrive within {seconds} s, or arrived too slowly.");
        let error = Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "timeout_error",
            "body_timeout",
            message,
        );
        Self {
            should_retry: Some(true),
            closes: true,
            ..error
        }
    }

    /// The arriving bodies take all the room that there is for them: 503.
    pub fn bodies_full(what: &str, limit: usize) -> Self {
        let message = format!(
            "The limit of {limit} {what} for all incoming request bodies is reached. Try again shortly."
        );
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self {
            retry_after_seconds: Some(1.0),
            closes: true,
            ..Self::new(status, "server_error", "overloaded", message)
        }
    }

    /// The queue is full: 429, with the time after which to retry.
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

    /// The waiting prompts have too many tokens in total: 429.
    pub fn queue_of_tokens_full(limit: usize) -> Self {
        let message = format!(
            "The queue is full (prompts of up to {limit} tokens may wait together). Try again shortly."
        );
        Self {
            message,
            ..Self::queue_full(0)
        }
    }

    /// The answer took longer than allowed: 408, with whether a retry makes sense.
    pub fn timed_out(what: &str, seconds: f64, retry: bool) -> Self {
        let message = format!("The request {what} for more than {seconds} s and was cancelled.");
        let status = StatusCode::REQUEST_TIMEOUT;
        Self {
            should_retry: Some(retry),
            ..Self::new(status, "timeout_error", "request_timeout", message)
        }
    }

    /// The answer took longer than allowed, in which so many attempts at the global law failed: 408.
    pub fn attempts_timed_out(seconds: f64, attempts: usize) -> Self {
        let error = Self::timed_out("ran", seconds, false);
        if attempts == 0 {
            return error;
        }
        let message = format!(
            "None of {attempts} attempts at the global law was accepted within {seconds} s; use on_exhaustion: weighted or mcmc, or another law."
        );
        Self { message, ..error }
    }

    /// A search took longer than an answer may: 408. A retry would take as long.
    pub fn search_timed_out(seconds: f64) -> Self {
        let message = format!("The search found no end within {seconds} s; set max_tokens.");
        let status = StatusCode::REQUEST_TIMEOUT;
        Self {
            should_retry: Some(false),
            ..Self::new(status, "timeout_error", "request_timeout", message)
        }
    }

    /// Reading the request and compiling its constraint took too long: 408. A retry would take as long.
    pub fn compile_timed_out(seconds: f64) -> Self {
        let message = format!(
            "Reading the request and compiling its constraint took more than {seconds} s and was cancelled."
        );
        let status = StatusCode::REQUEST_TIMEOUT;
        Self {
            should_retry: Some(false),
            ..Self::new(status, "timeout_error", "grammar_compile_timeout", message)
        }
    }

    /// The client of the request has disconnected; the answer is not read.
    pub fn nobody_waits() -> Self {
        Self::internal()
    }

    /// The stream does not exist or has ended: 404.
    pub fn unknown_stream(id: &str) -> Self {
        let message = format!("Stream '{}' does not exist or has ended.", shortened(id));
        Self::new(
            StatusCode::NOT_FOUND,
            "invalid_request_error",
            "stream_not_found",
            message,
        )
    }

    /// The memory for resumable streams is full: 429.
    pub fn no_room_for_streams() -> Self {
        let message =
            "The memory for resumable streams is full, so this stream cannot be kept. Try again shortly.";
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

    /// The server is shutting down: 503.
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

    /// The server failed: 500. Details go to the log, not to the client.
    pub fn internal() -> Self {
        let message = "The server failed while it handled this request. The request can be sent again.";
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            "internal_error",
            message,
        )
    }

    /// The HTTP layer refused the request before it reached any route: a 4xx.
    pub fn transport(status: StatusCode, message: impl Into<String>) -> Self {
        let code = if status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            "unsupported_media_type"
        } else {
            "bad_request"
        };
        Self::new(status, "invalid_request_error", code, message)
    }

    /// A constraint does not compile: 400, with every problem and its place.
    pub fn constraint(what: &Subject<'_>, error: &CompileError) -> Self {
        Self::constraints(&[(*what, error)])
    }

    /// Several constraints have problems: 400, with every problem, its field and its place.
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
        let error = Self {
            diagnostics: listed.collect(),
            ..Self::invalid(what.code(first.kind), Some(what.param.to_owned()), message)
        };
        match first.kind {
            ProblemKind::Busy => error.for_now(),
            _ => error,
        }
    }

    /// Turns the error into a 503 with a retry, if there is nothing wrong with the request.
    fn for_now(self) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            kind: "server_error",
            retry_after_seconds: Some(1.0),
            ..self
        }
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the machine-readable reason.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the JSON that clients read.
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
        if self.closes {
            response.force_close();
        }
        let mut response = response.json(self.envelope());
        response.extensions_mut().insert(ErrorCode(self.code));
        response
    }
}

/// Gives an answer the error envelope: refusals of the HTTP layer, most of which have no body, get the body
/// of every other error.
pub fn enveloped(answer: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let status = answer.status();
    let is_ours = answer.response().extensions().get::<ErrorCode>().is_some();
    if is_ours || !(status.is_client_error() || status.is_server_error()) {
        return answer;
    }
    let request = answer.request();
    let error = match status {
        StatusCode::NOT_FOUND => ApiError::unknown_route(request.method().as_str(), request.path()),
        _ if status.is_server_error() => ApiError::internal(),
        _ => ApiError::transport(
            status,
            status.canonical_reason().unwrap_or("The request is wrong."),
        ),
    };
    answer.into_response(error.error_response())
}

/// The reason of a refusal, for the counters of answers.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCode(pub &'static str);

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform::error::ProblemKind;

    fn envelope(error: &ApiError) -> serde_json::Value {
        serde_json::to_value(error.envelope()).expect("an envelope is plain JSON")
    }

    #[test]
    fn every_envelope_has_the_four_keys() {
        for error in [
            ApiError::internal(),
            ApiError::unknown_model("x", vec!["m"]),
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
    fn attempts_in_vain_are_told_apart_from_an_answer_without_an_end() {
        let message = |attempts| {
            let error = ApiError::attempts_timed_out(30.0, attempts);
            let body = envelope(&error);
            assert_eq!(body["error"]["code"], "request_timeout");
            body["error"]["message"].as_str().unwrap_or_default().to_owned()
        };
        assert!(message(0).starts_with("The request ran for more than 30 s"));
        assert!(message(12).starts_with("None of 12 attempts at the global law was accepted within 30 s"));
    }

    #[test]
    fn what_a_client_sent_is_never_echoed_at_length() {
        let body = envelope(&ApiError::unknown_model(&"é".repeat(100_000), vec!["m"]));
        assert!(body["error"]["message"].as_str().unwrap_or_default().len() < 2_000);
    }
}
