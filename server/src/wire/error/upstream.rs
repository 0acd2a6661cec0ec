//! The errors of a gateway: an upstream that does not answer, answers what it may not, or not in time.

use actix_web::http::StatusCode;

use super::{ApiError, shortened};

impl ApiError {
    /// The upstream cannot be reached, or has closed the connection: 502.
    pub fn upstream_failed(reason: impl std::fmt::Display) -> Self {
        let message = format!("The upstream cannot be asked: {reason}.");
        Self::new(
            StatusCode::BAD_GATEWAY,
            "server_error",
            "upstream_failed",
            message,
        )
    }

    /// The upstream was silent, or did not end, for this long: 504.
    pub fn upstream_late(what: &str, seconds: f64) -> Self {
        let message = format!("The upstream {what} within {seconds} s.");
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "timeout_error",
            "upstream_timeout",
            message,
        )
    }

    /// The answer of the upstream is not one of the API: 502.
    pub fn upstream_answer(reason: impl std::fmt::Display) -> Self {
        let message = format!("The upstream's answer is not one of the API: {reason}.");
        let status = StatusCode::BAD_GATEWAY;
        Self::new(status, "server_error", "upstream_invalid_answer", message)
    }

    /// The upstream refused the request without saying why in the form of the API: its status.
    pub fn upstream_status(status: u16) -> Self {
        let message = format!("The upstream answered with status {status}.");
        let status = StatusCode::from_u16(status).ok();
        // Whatever is no error is none that a client could act on.
        let status = status.filter(|status| status.is_client_error() || status.is_server_error());
        let status = status.unwrap_or(StatusCode::BAD_GATEWAY);
        Self::new(status, "server_error", "upstream_error", message)
    }

    /// The answer does not fit the request after so many attempts, and is withheld: 502.
    pub fn answer_rejected(place: &str, reason: &str, attempts: usize) -> Self {
        let message = format!(
            "{place}: {}; the upstream was asked {attempts} times.",
            shortened(reason)
        );
        let error = Self::new(
            StatusCode::BAD_GATEWAY,
            "server_error",
            "answer_rejected",
            message,
        );
        Self {
            param: Some(place.to_owned()),
            // The gateway has retried already.
            should_retry: Some(false),
            ..error
        }
    }

    /// The answer was cut off before it was valid, and is withheld: 502.
    pub fn answer_cut(place: &str, finish: &str) -> Self {
        let finish = shortened(finish).into_owned();
        let message = format!("{place}: the upstream ended it early (finish_reason is '{finish}').");
        let error = Self::new(
            StatusCode::BAD_GATEWAY,
            "server_error",
            "answer_incomplete",
            message,
        );
        Self {
            param: Some(place.to_owned()),
            should_retry: Some(false),
            ..error
        }
    }

    /// As many requests as may are running: 503.
    pub fn gateway_full(limit: usize) -> Self {
        let message = format!("The limit of {limit} requests at a time is reached. Try again shortly.");
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self {
            retry_after_seconds: Some(1.0),
            ..Self::new(status, "server_error", "overloaded", message)
        }
    }

    /// The gateway has no such route: 404, with those that it has.
    pub fn no_route_of_gateway(method: &str, path: &str, routes: &[&str]) -> Self {
        let mut error = Self::unknown_route(method, path);
        error
            .message
            .push_str(&format!(" This gateway has {}.", routes.join(", ")));
        error
    }

    /// The gateway does not forward a route of the API that it knows: 501.
    pub fn not_forwarded(route: &str, instead: &str) -> Self {
        let message =
            format!("A gateway does not forward {route}: it could not check its answers. Use {instead}.");
        let status = StatusCode::NOT_IMPLEMENTED;
        Self::new(status, "invalid_request_error", "route_not_forwarded", message)
    }
}
