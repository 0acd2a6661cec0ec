//! What all generating routes do around their own reading of the request: body in, samples submitted, answer out.

use std::sync::Arc;

use actix_web::http::header::{CACHE_CONTROL, HeaderName};
use actix_web::{HttpRequest, HttpResponse, web};

use crate::app::App;
use crate::body;
use crate::error::ApiError;
use crate::prepare::Prepared;
use crate::routes::blocking;
use crate::served::Served;
use crate::stream::EventStream;
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
    app.check_open()?;
    let body = body::read(&request, payload, app.body_limit).await?;
    let served = app.served.clone();
    let prepared = blocking(&app, move || prepare(&served, &body)).await?;
    respond(&app, prepared).await
}

/// Submits the samples and answers. The future that this returns, or the body of the stream, owns them: when the
/// client leaves, they are dropped and the engine frees their sequences.
async fn respond(app: &App, prepared: Prepared) -> Result<HttpResponse, ApiError> {
    let running = Running::start(app.served.engine(), prepared.requests)?;
    if !prepared.stream {
        let json = prepared.frame.collect(running).await?;
        return Ok(HttpResponse::Ok().content_type("application/json").body(json));
    }
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-cache"))
        // Proxies of the nginx kind would otherwise collect the stream before they pass it on.
        .insert_header((HeaderName::from_static("x-accel-buffering"), "no"))
        .streaming(EventStream::new(prepared.frame, running)))
}
