//! `POST /tokenize` and `POST /detokenize`: what the model's tokenizer makes of a text or a conversation, and back.

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};

use super::blocking;
use crate::app::App;
use crate::error::ApiError;
use crate::served::Served;
use crate::wire::tokens::{self, Tokenized};
use crate::{body, prompt};

/// The tokens of a text, or of a conversation with the model's chat template around it.
///
/// # Errors
/// The request is wrong, or the vocabulary cannot write the text.
pub async fn tokenize(
    app: web::Data<App>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    answer(app, request, payload, |served, body| {
        let tokens = match tokens::read(body)? {
            Tokenized::Prompt(prompt) => prompt::of_text(served, &prompt)?,
            Tokenized::Chat(chat) => prompt::of_chat(served, &chat)?.tokens,
        };
        let most = served.engine().max_context();
        Ok(json!({"count": tokens.len(), "max_model_len": most, "tokens": tokens}))
    })
    .await
}

/// The text of tokens.
///
/// # Errors
/// The request is wrong.
pub async fn detokenize(
    app: web::Data<App>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    answer(app, request, payload, |served, body| {
        let tokens = tokens::read_tokens(body)?;
        Ok(json!({"prompt": served.text().tokenizer.decode(&tokens)}))
    })
    .await
}

async fn answer(
    app: web::Data<App>,
    request: HttpRequest,
    payload: web::Payload,
    tell: fn(&Served, &[u8]) -> Result<Value, ApiError>,
) -> Result<HttpResponse, ApiError> {
    let _account = app.open_account(&request)?;
    let body = body::read(&request, payload, app.settings.body_limit).await?;
    let served = app.served.clone();
    let told = blocking(&app, move || tell(&served, &body)).await?;
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .body(told.to_string()))
}
