//! `POST /v1/completions`.

use actix_web::HttpResponse;

use super::Asked;
use crate::error::ApiError;
use crate::{prepare, respond};

/// Continues texts.
///
/// # Errors
/// The request is wrong, or the engine cannot take it.
pub async fn create(asked: Asked) -> Result<HttpResponse, ApiError> {
    respond::generate(asked, prepare::completion).await
}
