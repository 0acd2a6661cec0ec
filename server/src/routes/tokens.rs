//! `POST /tokenize` and `POST /detokenize`: converts a text or a conversation to the tokens of the model's
//! tokenizer, and back.

use actix_web::HttpResponse;
use lexiform::vocab::TokenKind;
use serde_json::json;

use crate::model::served::ServedModel;
use crate::request::prompt;
use crate::request::tokenization::PromptTokenizer;
use crate::routes::handler::{ApiRequest, answer_json};
use crate::wire::error::ApiError;
use crate::wire::tokens::{self, Tokenized};

/// Returns the tokens of a text, or of a conversation with the model's chat template around it.
///
/// # Errors
/// Fails if the request is invalid, or if the vocabulary cannot write the text.
pub async fn tokenize(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer_json(asked, |served, body, interest| {
        let most = served.engine().max_context();
        let (tokens, ignored) = match tokens::read(body)? {
            Tokenized::Prompt(prompt, ignored) => {
                let cutting = PromptTokenizer::of_text(served, "prompt", interest);
                (prompt::of_text(served, &prompt, cutting)?, ignored)
            }
            Tokenized::Chat(mut chat) => {
                prompt::check_sources(chat.constraints())?;
                prompt::resolve(served, &mut chat.generation, interest)?;
                let cutting = PromptTokenizer::of_text(served, "messages", interest);
                let prompt::Chat { tokens, prompt, .. } = prompt::of_chat(served, &chat, cutting)?;
                let vocabulary = served.vocabulary();
                let controls = tokens.iter().filter(|&&token| vocabulary.kind(token) != TokenKind::Text);
                let controls = controls.filter_map(|&token| std::str::from_utf8(vocabulary.bytes(token)).ok());
                let spans = prompt.map(|prompt| tokens::spans(&prompt, chat.messages.len(), controls));
                let told = json!({"count": tokens.len(), "max_model_len": most, "prompt": read(served, &tokens),
                                  "spans": spans, "tokens": tokens});
                return Ok((told, chat.ignored));
            }
        };
        let told = json!({"count": tokens.len(), "max_model_len": most, "tokens": tokens});
        Ok((told, ignored))
    })
    .await
}

/// Returns a prompt as the model reads it, with special tokens by their names.
fn read(served: &ServedModel, tokens: &[u32]) -> String {
    let bytes = tokens.iter().flat_map(|&token| served.vocabulary().bytes(token));
    let bytes: Vec<u8> = bytes.copied().collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the text of tokens.
///
/// # Errors
/// Fails if the request is invalid.
pub async fn detokenize(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer_json(asked, |served, body, _| {
        let (tokens, ignored) = tokens::read_tokens(body)?;
        Ok((
            json!({"prompt": served.text().tokenizer.decode(&tokens)}),
            ignored,
        ))
    })
    .await
}
