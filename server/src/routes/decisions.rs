//! `POST /v1/decisions`.

use actix_web::HttpResponse;

use super::{Asked, blocking};
use crate::error::ApiError;
use crate::{decide, wire};

/// Answers questions that have closed lists of answers.
///
/// # Errors
/// The request is wrong, or the engine cannot take it.
pub async fn create(asked: Asked) -> Result<HttpResponse, ApiError> {
    let app = asked.app.clone();
    let _account = app.open_account(&asked.request)?;
    app.check_open()?;
    let body = asked.body().await?;
    let served = app.served.clone();
    let asked = blocking(&app, move |interest| {
        decide::prepare(&served, wire::decisions::read(&body)?, interest)
    });
    let json = decide::answer(&app.served, asked.await?).await?;
    Ok(HttpResponse::Ok().content_type("application/json").body(json))
}
