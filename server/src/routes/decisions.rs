//! `POST /v1/decisions`.

use std::sync::Arc;

use actix_web::HttpResponse;

use crate::answer::decision;
use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::routes::handler::{self, ApiRequest};
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
        let request = asked.request.clone();
        let body = asked.body().await?;
        let prepare = |served: &Arc<ServedModel>, body: &[u8], interest: &Interest| {
            decision::prepare(served, wire::decisions::read(body)?, interest)
        };
        let prepared = handler::with_model((&app, &request), requester, body, &mut account, prepare);
        let (served, (asked, ignored)) = prepared.await?;
        let (json, usage) = decision::answer(&served, asked, &ignored).await?;
        Ok((served, json, usage, ignored))
    }
    .await;
    account.settle(answered.as_ref().map(|(_, _, usage, _)| *usage));
    let (served, json, _, ignored) = answered?;
    served.metrics().ignored(ignored.count());
    let mut answer = HttpResponse::Ok();
    if let Some(header) = ignored.header() {
        answer.insert_header((handler::IGNORED, header));
    }
    Ok(answer.content_type("application/json").body(json))
}
