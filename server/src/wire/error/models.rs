//! The errors of requests whose model is not in memory.

use actix_web::http::StatusCode;

use super::ApiError;

/// The status of all but one of them.
const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
/// The seconds after which a request may find a model loaded, or room for it.
const RETRY_SECONDS: f64 = 5.0;

impl ApiError {
    /// The model is being loaded, which takes longer than a request may wait: 503.
    pub fn model_loading(name: &str, seconds: f64) -> Self {
        let message = format!(
            "The model '{name}' is being loaded, and was not ready after {seconds} s. Try again shortly."
        );
        Self {
            retry_after_seconds: Some(RETRY_SECONDS),
            ..Self::new(UNAVAILABLE, "server_error", "model_loading", message)
        }
    }

    /// The models in memory are all in use, so that none makes room for this one: 503.
    pub fn no_room_for_model(name: &str, reason: &str) -> Self {
        let message = format!("The model '{name}' is not loaded: {reason}. Try again shortly.");
        Self {
            retry_after_seconds: Some(RETRY_SECONDS),
            ..Self::new(UNAVAILABLE, "server_error", "no_room_for_model", message)
        }
    }

    /// The model cannot be loaded: 503.
    pub fn model_not_loaded(name: &str, reason: &str) -> Self {
        let message = format!("The model '{name}' could not be loaded: {reason}.");
        Self::new(UNAVAILABLE, "server_error", "model_not_loaded", message)
    }

    /// The model cannot be unloaded while it is being loaded: 409.
    pub fn model_busy(name: &str) -> Self {
        let message = format!("The model '{name}' is being loaded; unload it when it is.");
        Self::new(
            StatusCode::CONFLICT,
            "invalid_request_error",
            "model_loading",
            message,
        )
    }
}
