//! `POST /v1/completions`.

use actix_web::{HttpRequest, HttpResponse, web};

use super::blocking;
use crate::answer::{Frame, Shape};
use crate::app::App;
use crate::body;
use crate::error::ApiError;
use crate::prompt;
use crate::respond::{Prepared, respond};
use crate::served::Served;
use crate::wire;

/// Continues texts.
///
/// # Errors
/// The request is wrong, or the engine cannot take it.
pub async fn create(
    app: web::Data<App>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    app.check_open()?;
    let body = body::read(&request, payload, app.body_limit).await?;
    let served = app.served.clone();
    let prepared = blocking(&app, move || prepare(&served, &body)).await?;
    respond(&app, prepared).await
}

fn prepare(served: &std::sync::Arc<Served>, body: &[u8]) -> Result<Prepared, ApiError> {
    let request = wire::completion::read(body)?;
    let generation = &request.generation;
    prompt::check_model(served, generation)?;
    let prompts: Vec<Vec<u32>> = request
        .prompts
        .iter()
        .map(|prompt| prompt::of_text(served, prompt))
        .collect::<Result<_, _>>()?;
    let requests = prompt::engine_requests(served, generation, prompts, request.logprobs)?;
    let frame = Frame::new(
        served.clone(),
        Shape::Text,
        generation,
        requests.len(),
        request.logprobs.is_some(),
    );
    Ok(Prepared {
        requests,
        frame,
        stream: generation.stream,
    })
}
