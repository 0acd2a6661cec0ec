//! `POST /v1/responses`.

use actix_web::HttpResponse;

use super::Asked;
use crate::error::ApiError;
use crate::{prepare, respond};

/// Answers a list of items with more items.
///
/// # Errors
/// The request is wrong, or the engine cannot take it.
pub async fn create(asked: Asked) -> Result<HttpResponse, ApiError> {
    respond::generate(asked, prepare::response).await
}
