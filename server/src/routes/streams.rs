//! `GET /v1/streams/{id}`: the rest of a stream whose connection was lost.

use std::sync::Arc;

use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};

use crate::operate::keys::Key;
use crate::routes::respond::event_stream;
use crate::routes::state::AppState;
use crate::wire::error::ApiError;

/// Returns the events of a stream after the one that `Last-Event-ID` names, or all of them.
///
/// # Errors
/// Fails if there is no such stream, if it was forgotten, or if it belongs to another key.
pub async fn get(
    app: web::Data<AppState>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let last = request.headers().get("last-event-id");
    let from = match last.map(|last| last.to_str().ok()?.parse::<usize>().ok()?.checked_add(1)) {
        None => 0,
        Some(Some(from)) => from,
        Some(None) => {
            let message = "Last-Event-ID: expected the number of an event of this stream";
            return Err(ApiError::invalid("invalid_value", None, message));
        }
    };
    let extensions = request.extensions();
    let owner = extensions.get::<Arc<Key>>().map(|key| key.name.as_str());
    let reader = app.streams.reader(&id, owner, from);
    let reader = reader.ok_or_else(|| ApiError::unknown_stream(&id))?;
    Ok(event_stream(HttpResponse::Ok(), reader))
}
