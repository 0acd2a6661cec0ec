//! The errors of requests whose API key is not valid, or does not allow them.

use actix_web::http::StatusCode;

use super::{ApiError, shortened};

impl ApiError {
    /// The API key is missing or unknown: 401.
    pub fn unauthorized(message: &str) -> Self {
        let status = StatusCode::UNAUTHORIZED;
        Self::new(status, "authentication_error", "invalid_api_key", message)
    }

    /// A limit of the key is reached: 429.
    pub fn rate_limit(what: &str, seconds: f64) -> Self {
        let message = format!("Your limit of {what} is reached. Try again in {seconds:.1} s.");
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self {
            retry_after_seconds: Some(seconds),
            ..Self::new(status, "rate_limit_error", "rate_limit_exceeded", message)
        }
    }

    /// The API key has expired: 401.
    pub fn key_expired() -> Self {
        let message = "This API key has expired. Ask the operator of the service for another one.";
        let status = StatusCode::UNAUTHORIZED;
        Self::new(status, "authentication_error", "expired_api_key", message)
    }

    /// The API key does not allow what the request asks for in this field: 403.
    pub fn not_permitted(field: &str, what: &str, name: &str, allowed: &[String]) -> Self {
        let allowed = match allowed {
            [] => "none".to_owned(),
            _ => allowed.join(", "),
        };
        let message = format!(
            "{field}: this API key does not allow the {what} '{}'; it allows {allowed}.",
            shortened(name)
        );
        let status = StatusCode::FORBIDDEN;
        Self {
            param: Some(field.to_owned()),
            ..Self::new(status, "permission_error", "not_permitted", message)
        }
    }

    /// Who sends the request may not load and unload models: 403.
    pub fn not_operator(message: &str) -> Self {
        let status = StatusCode::FORBIDDEN;
        Self::new(status, "permission_error", "not_permitted", message)
    }
}
