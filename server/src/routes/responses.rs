//! `POST /v1/responses`.

use actix_web::HttpResponse;

use crate::routes::handler::ApiRequest;
use crate::routes::{prepare, respond};
use crate::wire::error::ApiError;

/// Answers a list of items with more items.
///
/// # Errors
/// The request is wrong, or the engine cannot take it.
pub async fn create(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    respond::generate(asked, prepare::response).await
}
