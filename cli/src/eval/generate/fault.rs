//! The ways in which a request fails, and asking again after those that may pass, a bounded number of times.

use std::io::ErrorKind;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The wait before the second attempt, which doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait that we choose.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The longest wait that an endpoint may choose.
const LONGEST_WISH: Duration = Duration::from_secs(120);

/// A request that had no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// What the endpoint or the system said.
    pub(crate) reason: String,
    /// The status of the answer, if there was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) status: Option<u16>,
    /// The time after which the endpoint wants to be asked again.
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The endpoint does not take the request, for example because of its schema.
    Refused,
    /// The prompt or the shortest answer has too many tokens for the endpoint or for `--max-tokens`.
    TooLong,
    /// No connection could be made.
    Unreachable,
    /// The answer was not complete within `--timeout-seconds`.
    Late,
    /// The answer ended without a reason to end.
    Cut,
    /// The key is missing or wrong.
    Denied,
    /// There is no such model or path.
    NotFound,
    /// The endpoint has too much to do.
    Busy,
    /// The endpoint failed.
    ServerError,
    /// The answer is not in OpenAI's format.
    NotTheApi,
    /// The answer is longer than what is read of an answer.
    Endless,
}

impl Fault {
    pub(crate) fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
            status: None,
            retry_after: None,
        }
    }

    /// Creates the fault of an answer that is no success, from its status and body.
    pub(super) fn of_status(status: u16, body: &str, retry_after: Option<Duration>) -> Self {
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let error = parsed.as_ref().map(error_object);
        Self {
            kind: kind(status, error),
            reason: reason(status, body, error),
            status: Some(status),
            retry_after,
        }
    }

    /// Creates the fault of an error that was sent within a stream, whose own status is a success.
    pub(super) fn of_event(event: &Value) -> Self {
        let error = error_object(event);
        let status = ["status", "code"]
            .iter()
            .find_map(|field| u16::try_from(error[field].as_u64()?).ok())
            .filter(|status| (400..600).contains(status));
        let is_about_request = error["type"].as_str().is_some_and(|name| {
            let name = name.to_lowercase().replace('_', "");
            name.contains("invalidrequest") || name.contains("badrequest")
        });
        let status = status.unwrap_or(if is_about_request { 400 } else { 500 });
        Self {
            kind: kind(status, Some(error)),
            reason: reason(status, &event.to_string(), Some(error)),
            status: Some(status),
            retry_after: None,
        }
    }
}

impl Kind {
    /// Returns `true` if the same request may succeed later.
    pub(super) fn may_pass(self) -> bool {
        matches!(
            self,
            Kind::Unreachable | Kind::Late | Kind::Cut | Kind::Busy | Kind::ServerError
        )
    }

    /// Returns `true` if the failure says something about the item, so that it is an outcome and asking again
    /// is pointless. All others are failures of the endpoint or of the way to it.
    pub(super) fn is_about_item(self) -> bool {
        matches!(self, Kind::Refused | Kind::TooLong)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Refused => "refused",
            Kind::TooLong => "too_long",
            Kind::Unreachable => "unreachable",
            Kind::Late => "late",
            Kind::Cut => "cut",
            Kind::Denied => "denied",
            Kind::NotFound => "not_found",
            Kind::Busy => "busy",
            Kind::ServerError => "server_error",
            Kind::NotTheApi => "not_the_api",
            Kind::Endless => "endless",
        }
    }
}

/// The faults of a connection.
impl From<ureq::Error> for Fault {
    fn from(error: ureq::Error) -> Self {
        let kind = match &error {
            ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => Kind::Unreachable,
            ureq::Error::Timeout(_) => Kind::Late,
            ureq::Error::Io(error) => match error.kind() {
                ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe => Kind::Cut,
                _ => Kind::Unreachable,
            },
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) | ureq::Error::Http(_) => {
                Kind::NotTheApi
            }
            _ => Kind::Unreachable,
        };
        Self::new(kind, told(&error))
    }
}

/// Returns what went wrong with a connection, without the number of the system's error.
fn told(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "no complete answer within --timeout-seconds".to_owned(),
        ureq::Error::Io(error) => crate::failure::reason(error),
        other => other.to_string(),
    }
}

/// Returns the object that describes an error: `error` of the body, or the body itself.
fn error_object(body: &Value) -> &Value {
    body.get("error").unwrap_or(body)
}

fn kind(status: u16, error: Option<&Value>) -> Kind {
    match status {
        401 | 403 => Kind::Denied,
        404 | 405 => Kind::NotFound,
        408 | 425 => Kind::ServerError,
        409 | 429 | 503 => Kind::Busy,
        400..=499 | 501 if error.is_some_and(is_about_length) => Kind::TooLong,
        400..=499 | 501 => Kind::Refused,
        500.. => Kind::ServerError,
        _ => Kind::NotTheApi,
    }
}

/// Returns `true` if the error says that the prompt or the answer does not fit. Servers have different codes
/// for it, or none.
fn is_about_length(error: &Value) -> bool {
    const CODES: [&str; 3] = [
        "context_length_exceeded",
        "budget_too_small",
        "exceed_context_size_error",
    ];
    const PHRASES: [&str; 3] = ["context length", "context size", "context window"];
    let named = |field: &str| error[field].as_str().is_some_and(|code| CODES.contains(&code));
    let message = error["message"].as_str().unwrap_or_default().to_lowercase();
    named("code") || named("type") || PHRASES.iter().any(|phrase| message.contains(phrase))
}

const REASON_CHARACTERS: usize = 300;

/// Returns the message of an error, or the beginning of a body that has none.
fn reason(status: u16, body: &str, error: Option<&Value>) -> String {
    let message = error.and_then(|error| error["message"].as_str().or(error.as_str()));
    let text = message.unwrap_or(body).trim();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text: String = words.join(" ").chars().take(REASON_CHARACTERS).collect();
    match text.is_empty() {
        true => format!("status {status}"),
        false => format!("status {status}: {text}"),
    }
}

/// Asks until there is an answer, or a failure that asking again does not mend, or `retries` more attempts
/// have failed. Returns the last result, and the failures before it.
pub(super) fn persist<A>(
    retries: usize,
    mut ask: impl FnMut() -> Result<A, Fault>,
    wait: impl Fn(Duration),
) -> (Result<A, Fault>, Vec<Kind>) {
    let mut failed = Vec::new();
    loop {
        match ask() {
            Err(fault) if fault.kind.may_pass() && failed.len() < retries => {
                wait(pause(failed.len(), fault.retry_after));
                failed.push(fault.kind);
            }
            result => return (result, failed),
        }
    }
}

fn pause(failures: usize, wish: Option<Duration>) -> Duration {
    let doublings = u32::try_from(failures).unwrap_or(u32::MAX);
    let ours = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(doublings));
    wish.map_or(ours.min(LONGEST_WAIT), |wish| wish.min(LONGEST_WISH))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use serde_json::json;

    fn kind_of(status: u16, error: &Value) -> Kind {
        Fault::of_status(status, &json!({"error": error}).to_string(), None).kind
    }

    #[test]
    fn a_schema_is_refused_only_by_statuses_about_the_request() {
        let said = json!({"message": "`not` is not supported"});
        for (status, expected) in [
            (400, Kind::Refused),
            (422, Kind::Refused),
            (501, Kind::Refused),
            (401, Kind::Denied),
            (404, Kind::NotFound),
            (429, Kind::Busy),
            (500, Kind::ServerError),
            (302, Kind::NotTheApi),
        ] {
            assert_eq!(kind_of(status, &said), expected, "{status}");
        }
    }

    #[test]
    fn a_prompt_that_does_not_fit_is_no_refusal_of_the_schema() {
        for error in [
            json!({"code": "context_length_exceeded", "message": "too long"}),
            json!({"code": 400, "type": "exceed_context_size_error", "message": "too long"}),
            json!({"code": 400, "message": "This model's maximum context length is 8192 tokens."}),
        ] {
            assert_eq!(kind_of(400, &error), Kind::TooLong, "{error}");
        }
    }

    #[test]
    fn an_error_within_a_stream_has_its_own_status() {
        let kind = |error: Value| Fault::of_event(&json!({"error": error})).kind;
        assert_eq!(
            kind(json!({"code": 400, "message": "bad grammar"})),
            Kind::Refused
        );
        assert_eq!(
            kind(json!({"type": "BadRequestError", "message": "no"})),
            Kind::Refused
        );
        assert_eq!(kind(json!({"code": "internal_error"})), Kind::ServerError);
        assert_eq!(
            Fault::of_event(&json!({"error": "no memory"})).reason,
            "status 500: no memory"
        );
    }

    #[test]
    fn a_page_is_quoted_from_its_beginning() {
        let fault = Fault::of_status(502, "<html>\n  <b>Bad  gateway</b>\n</html>", None);
        assert_eq!(fault.reason, "status 502: <html> <b>Bad gateway</b> </html>");
        assert_eq!(Fault::of_status(500, "", None).reason, "status 500");
    }

    fn tried(retries: usize, faults: &[Fault]) -> (bool, Vec<Kind>, Vec<u64>) {
        let waits = RefCell::new(Vec::new());
        let mut left = faults.iter().cloned();
        let ask = || left.next().map_or_else(|| Ok(()), Err);
        let (result, failed) = persist(retries, ask, |wait| {
            waits
                .borrow_mut()
                .push(u64::try_from(wait.as_millis()).expect("a short wait"));
        });
        (result.is_ok(), failed, waits.into_inner())
    }

    #[test]
    fn waits_double_and_attempts_are_bounded() {
        let late = Fault::new(Kind::Late, "");
        let kinds = |count| vec![Kind::Late; count];
        let two = tried(3, &vec![late.clone(); 2]);
        assert_eq!(two, (true, kinds(2), vec![500, 1000]));
        let all = tried(3, &vec![late.clone(); 9]);
        assert_eq!(all, (false, kinds(3), vec![500, 1000, 2000]));
        let (_, _, waits) = tried(9, &vec![late; 20]);
        assert_eq!(waits.last(), Some(&30_000));
    }

    #[test]
    fn the_endpoint_says_when_it_wants_to_be_asked_within_bounds() {
        let busy = |seconds| Fault {
            retry_after: Some(Duration::from_secs(seconds)),
            ..Fault::new(Kind::Busy, "")
        };
        let (_, _, waits) = tried(3, &[busy(7), busy(0), busy(86_400)]);
        assert_eq!(waits, [7_000, 0, 120_000]);
    }

    #[test]
    fn what_does_not_pass_is_asked_once() {
        for kind in [
            Kind::Refused,
            Kind::TooLong,
            Kind::Denied,
            Kind::NotFound,
            Kind::NotTheApi,
        ] {
            let refused = tried(3, &[Fault::new(kind, "")]);
            assert_eq!(refused, (false, vec![], vec![]), "{kind:?}");
        }
    }
}
