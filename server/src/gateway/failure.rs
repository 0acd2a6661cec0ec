//! Why a request of a gateway failed: an error of its own, or one of the upstream, which is passed on.

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use serde_json::{Map, Value, json};

use crate::wire::chat::upstream::WrongShape;
use crate::wire::error::{ApiError, ErrorCode, shortened};

/// The reason why a request failed.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// An error of the gateway.
    Own(Box<ApiError>),
    /// An error of the upstream.
    Upstream(Box<Refused>),
}

/// An error of the upstream, in the form of the API.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    status: StatusCode,
    envelope: Value,
    retry_after: Option<HeaderValue>,
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Failure::Own(Box::new(error))
    }
}

impl From<WrongShape> for Failure {
    fn from(error: WrongShape) -> Self {
        ApiError::upstream_answer(error).into()
    }
}

impl Failure {
    /// Creates the failure of a request that the upstream has answered with an error.
    pub(super) fn of_upstream(status: u16, body: &[u8], retry_after: Option<&[u8]>) -> Self {
        let error = serde_json::from_slice(body).ok().as_ref().and_then(envelope);
        let own = ApiError::upstream_status(status);
        let Some(envelope) = error else {
            return own.into();
        };
        let retry_after = retry_after.and_then(|value| HeaderValue::from_bytes(value).ok());
        Failure::Upstream(Box::new(Refused {
            status: own.status(),
            envelope,
            retry_after,
        }))
    }

    /// Creates the failure of a stream in which the upstream sent an error.
    pub(super) fn in_stream(event: &Map<String, Value>) -> Self {
        match envelope(&Value::Object(event.clone())) {
            Some(envelope) => Failure::Upstream(Box::new(Refused {
                status: StatusCode::BAD_GATEWAY,
                envelope,
                retry_after: None,
            })),
            None => ApiError::upstream_status(StatusCode::BAD_GATEWAY.as_u16()).into(),
        }
    }

    /// Returns the JSON that clients read.
    pub(super) fn envelope(&self) -> String {
        match self {
            Failure::Own(error) => serde_json::to_string(&error.envelope()).unwrap_or_default(),
            Failure::Upstream(refused) => refused.envelope.to_string(),
        }
    }
}

/// Returns an error of the upstream with the four keys that clients read, if it has the form of one.
fn envelope(body: &Value) -> Option<Value> {
    let error = body.get("error")?;
    let text = |name: &str| {
        error
            .get(name)
            .and_then(Value::as_str)
            .map(|text| shortened(text).into_owned())
    };
    // Some write the error as a text, and the code as a number.
    let message = text("message").or_else(|| error.as_str().map(|text| shortened(text).into_owned()))?;
    let kind = text("type").unwrap_or_else(|| "upstream_error".to_owned());
    let code = text("code").unwrap_or_else(|| "upstream_error".to_owned());
    Some(json!({"error": {"message": message, "type": kind, "param": text("param"), "code": code}}))
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Own(error) => write!(f, "{error}"),
            Failure::Upstream(refused) => write!(f, "{} of the upstream", refused.status.as_u16()),
        }
    }
}

impl ResponseError for Failure {
    fn status_code(&self) -> StatusCode {
        match self {
            Failure::Own(error) => error.status_code(),
            Failure::Upstream(refused) => refused.status,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let refused = match self {
            Failure::Own(error) => return error.error_response(),
            Failure::Upstream(refused) => refused,
        };
        let mut response = HttpResponse::build(refused.status);
        if let Some(value) = &refused.retry_after {
            response.insert_header((header::RETRY_AFTER, value.clone()));
        }
        let mut response = response.json(&refused.envelope);
        response.extensions_mut().insert(ErrorCode("upstream_error"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_passed_on_with_the_four_keys() {
        let body = br#"{"error": {"message": "no", "type": "t", "code": "c", "x": 1}, "y": 2}"#;
        let failure = Failure::of_upstream(429, body, Some(b"7"));
        let expected = r#"{"error":{"message":"no","type":"t","param":null,"code":"c"}}"#;
        assert_eq!(
            (failure.status_code().as_u16(), &*failure.envelope()),
            (429, expected)
        );
        let response = failure.error_response();
        assert_eq!(
            response.headers().get("retry-after").map(HeaderValue::as_bytes),
            Some(&b"7"[..])
        );
    }

    #[test]
    fn what_is_no_error_of_the_api_is_told_by_its_status() {
        for (status, shown, body) in [
            (500, 500, &b"<html>"[..]),
            (503, 503, b"{\"error\": 1}"),
            (302, 502, b""),
            (200, 502, b"{}"),
            (999, 502, b"{}"),
        ] {
            let failure = Failure::of_upstream(status, body, None);
            assert_eq!(failure.status_code().as_u16(), shown);
            assert!(
                failure.envelope().contains("\"code\":\"upstream_error\""),
                "{}",
                failure.envelope()
            );
        }
    }
}
