//! `POST /v1/responses`.

use actix_web::HttpResponse;

use crate::routes::handler::ApiRequest;
use crate::routes::{prepare, respond};
use crate::wire::error::ApiError;

/// Answers a list of items with more items.
///
/// # Errors
/// Fails if the request is invalid, or if the engine cannot accept it.
pub async fn create(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    respond::generate(asked, prepare::response).await
}
