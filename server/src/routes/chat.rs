//! `POST /v1/chat/completions`.

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

/// Answers a conversation.
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
    let request = wire::chat::read(body)?;
    let generation = &request.generation;
    prompt::check_model(served, generation)?;
    let tokens = prompt::of_chat(served, &request)?;
    let requests = prompt::engine_requests(served, generation, vec![tokens], request.logprobs)?;
    let shape = request.forced_tool.clone().map_or(Shape::Chat, Shape::Tool);
    let frame = Frame::new(
        served.clone(),
        shape,
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
