//! `POST /v1/responses`.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::error::ApiError;
use crate::{prepare, respond};

/// Answers a list of items with more items.
///
/// # Errors
/// The request is wrong, or the engine cannot take it.
pub async fn create(
    app: web::Data<App>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    respond::generate(app, request, payload, prepare::response).await
}
