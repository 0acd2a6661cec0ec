//! `POST /v1/completions`.

use actix_web::HttpResponse;

use crate::routes::handler::ApiRequest;
use crate::routes::{prepare, respond};
use crate::wire::error::ApiError;

/// Continues texts.
///
/// # Errors
/// Fails if the request is invalid, or if the engine cannot accept it.
pub async fn create(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    respond::generate(asked, prepare::completion).await
}
