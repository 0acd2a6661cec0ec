//! The errors of requests whose model is not in memory.

use actix_web::http::StatusCode;

use super::ApiError;

/// The seconds after which a request may find a model loaded, or room for it.
const RETRY_SECONDS: f64 = 5.0;

impl ApiError {
    /// The model is being loaded, which takes longer than a request may wait: 503.
    pub fn model_loading(name: &str, seconds: f64) -> Self {
        let message = format!(
            "The model '{name}' is being loaded, and was not ready after {seconds} s. Try again shortly."
        );
        Self::unavailable("model_loading", message, Some(RETRY_SECONDS))
    }

    /// The models in memory are all in use, so that none makes room for this one: 503.
    pub fn no_room_for_model(name: &str, reason: &str) -> Self {
        let message = format!("The model '{name}' is not loaded: {reason}. Try again shortly.");
        Self::unavailable("no_room_for_model", message, Some(RETRY_SECONDS))
    }

    /// The model cannot be loaded: 503.
    pub fn model_not_loaded(name: &str, reason: &str) -> Self {
        let message = format!("The model '{name}' could not be loaded: {reason}.");
        Self::unavailable("model_not_loaded", message, None)
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

    fn unavailable(code: &'static str, message: String, retry_after_seconds: Option<f64>) -> Self {
        Self {
            retry_after_seconds,
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", code, message)
        }
    }
}
