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
    let mut account = app.open_account(&asked.request)?;
    let owner = super::owner(&asked.request);
    let answered = async {
        app.check_open()?;
        let body = asked.body().await?;
        let served = app.served.clone();
        let asked = blocking(&app, owner, move |interest| {
            decide::prepare(&served, wire::decisions::read(&body)?, interest)
        });
        decide::answer(&app.served, asked.await?).await
    }
    .await;
    account.settle(answered.as_ref().map(|(_, usage)| *usage));
    let (json, _) = answered?;
    Ok(HttpResponse::Ok().content_type("application/json").body(json))
}
