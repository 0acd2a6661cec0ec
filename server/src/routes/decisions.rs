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
        let (asked, ignored) = asked.await?;
        let (json, usage) = decide::answer(&app.served, asked, &ignored).await?;
        Ok((json, usage, ignored))
    }
    .await;
    account.settle(answered.as_ref().map(|(_, usage, _)| *usage));
    let (json, _, ignored) = answered?;
    app.served.metrics().ignored(ignored.count());
    let mut answer = HttpResponse::Ok();
    if let Some(header) = ignored.header() {
        answer.insert_header((super::IGNORED, header));
    }
    Ok(answer.content_type("application/json").body(json))
}
