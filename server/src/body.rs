//! Reading a request's body within its limit.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::{HttpRequest, web};
use futures_util::StreamExt as _;

use crate::error::ApiError;

/// How much of a body that is too large is read and thrown away. A connection that is closed while its client still
/// sends takes the answer with it; so honest mistakes get to see why they were refused, and floods are cut.
const DRAINED: usize = 16 << 20;

/// The whole body.
///
/// # Errors
/// It is larger than `limit`, not declared as JSON, compressed, or broken off.
pub async fn read(
    request: &HttpRequest,
    mut payload: web::Payload,
    limit: usize,
) -> Result<Vec<u8>, ApiError> {
    let head = check_head(request);
    let declared = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|declared| declared > limit.saturating_add(DRAINED)) {
        return Err(ApiError::too_large(limit));
    }
    let mut body = Vec::with_capacity(declared.unwrap_or(0).min(limit));
    let mut received = 0;
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| {
            ApiError::transport(
                StatusCode::BAD_REQUEST,
                format!("The request body could not be read: {error}."),
            )
        })?;
        received += chunk.len();
        if received <= limit {
            body.extend_from_slice(&chunk);
        } else if received > limit.saturating_add(DRAINED) {
            break;
        }
    }
    head?;
    if received > limit {
        Err(ApiError::too_large(limit))
    } else {
        Ok(body)
    }
}

/// A page in a browser can send a body to this server without asking its user, unless the body must be declared as
/// JSON.
fn check_head(request: &HttpRequest) -> Result<(), ApiError> {
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    if let Some(encoding) = request
        .headers()
        .get(CONTENT_ENCODING)
        .filter(|encoding| *encoding != "identity")
    {
        let encoding = String::from_utf8_lossy(encoding.as_bytes()).into_owned();
        return Err(ApiError::transport(
            status,
            format!("Bodies encoded as '{encoding}' are not read."),
        ));
    }
    let Some(kind) = request.headers().get(CONTENT_TYPE) else {
        return Ok(());
    };
    let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    let message = format!("Send the body with 'content-type: application/json', not '{essence}'.");
    Err(ApiError::transport(status, message))
}
