//! What all generating routes do around their own reading of the request: body in, samples submitted, answer out.

use std::sync::Arc;

use actix_web::http::header::{CACHE_CONTROL, HeaderName};
use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::audit::Account;
use crate::body;
use crate::error::ApiError;
use crate::prepare::Prepared;
use crate::routes::blocking;
use crate::served::Served;
use crate::stream::EventStream;
use crate::wire::response::Usage;
use crate::worker::Running;

/// Answers a request that `prepare` reads.
///
/// # Errors
/// The request is wrong, or the engine cannot take it.
pub(crate) async fn generate(
    app: web::Data<App>,
    request: HttpRequest,
    payload: web::Payload,
    prepare: fn(&Arc<Served>, &[u8]) -> Result<Prepared, ApiError>,
) -> Result<HttpResponse, ApiError> {
    let mut account = app.open_account(&request)?;
    let answered = run(&app, &request, payload, prepare, &mut account).await;
    match answered {
        Ok((prepared, running)) => answer(prepared, running, account).await,
        Err(error) => {
            account.end(error.code(), Usage::default());
            Err(error)
        }
    }
}

async fn run(
    app: &App,
    request: &HttpRequest,
    payload: web::Payload,
    prepare: fn(&Arc<Served>, &[u8]) -> Result<Prepared, ApiError>,
    account: &mut Account,
) -> Result<(Prepared, Running), ApiError> {
    app.check_open()?;
    let body = body::read(request, payload, app.settings.body_limit).await?;
    account.note("bytes", body.len());
    let served = app.served.clone();
    let mut prepared = blocking(app, move || prepare(&served, &body)).await?;
    account.note("model", app.served.name());
    account.note("grammar", prepared.grammar.clone());
    let requests = std::mem::take(&mut prepared.requests);
    let patience = app.served.patience().shortened(prepared.timeout);
    let running = Running::start(app.served.engine(), requests, patience)?;
    Ok((prepared, running))
}

/// Answers. The future that this returns, or the body of the stream, owns the samples: when the client leaves, they are
/// dropped and the engine frees their sequences.
async fn answer(
    mut prepared: Prepared,
    running: Running,
    account: Account,
) -> Result<HttpResponse, ApiError> {
    prepared.frame.charge(account);
    let mut response = HttpResponse::Ok();
    if let Some(enforced) = prepared.enforced {
        response.insert_header((HeaderName::from_static("x-lexiform-enforced"), enforced));
    }
    if !prepared.stream {
        let json = prepared.frame.collect(running).await?;
        return Ok(response.content_type("application/json").body(json));
    }
    Ok(response
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-cache"))
        // Proxies of the nginx kind would otherwise collect the stream before they pass it on.
        .insert_header((HeaderName::from_static("x-accel-buffering"), "no"))
        .streaming(EventStream::new(prepared.frame, running)))
}
