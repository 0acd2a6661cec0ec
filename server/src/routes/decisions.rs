//! `POST /v1/decisions`.

use actix_web::HttpResponse;

use crate::answer::decision;
use crate::routes::handler::{self, ApiRequest, blocking};
use crate::wire;
use crate::wire::error::ApiError;

/// Answers questions with closed lists of answers.
///
/// # Errors
/// Fails if the request is invalid, or if the engine cannot accept it.
pub async fn create(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    let app = asked.app.clone();
    let mut account = app.open_account(&asked.request)?;
    let requester = handler::requester(&app, &asked.request);
    let answered = async {
        app.check_open()?;
        let body = asked.body().await?;
        let served = app.served.clone();
        let asked = blocking(&app, requester, move |interest| {
            decision::prepare(&served, wire::decisions::read(&body)?, interest)
        });
        let (asked, ignored) = asked.await?;
        let (json, usage) = decision::answer(&app.served, asked, &ignored).await?;
        Ok((json, usage, ignored))
    }
    .await;
    account.settle(answered.as_ref().map(|(_, usage, _)| *usage));
    let (json, _, ignored) = answered?;
    app.served.metrics().ignored(ignored.count());
    let mut answer = HttpResponse::Ok();
    if let Some(header) = ignored.header() {
        answer.insert_header((handler::IGNORED, header));
    }
    Ok(answer.content_type("application/json").body(json))
}
