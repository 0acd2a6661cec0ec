//! `POST /v1/decisions`.

use actix_web::{HttpRequest, HttpResponse, web};

use super::blocking;
use crate::app::App;
use crate::error::ApiError;
use crate::{body, decide, wire};

/// Answers questions that have closed lists of answers.
///
/// # Errors
/// The request is wrong, or the engine cannot take it.
pub async fn create(
    app: web::Data<App>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let _account = app.open_account(&request)?;
    app.check_open()?;
    let body = body::read(&request, payload, app.settings.body_limit).await?;
    let served = app.served.clone();
    let asked = blocking(&app, move || {
        decide::prepare(&served, wire::decisions::read(&body)?)
    });
    let json = decide::answer(&app.served, asked.await?).await?;
    Ok(HttpResponse::Ok().content_type("application/json").body(json))
}
