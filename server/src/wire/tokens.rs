//! `POST /tokenize` and `POST /detokenize`: the requests.

use super::chat::{self, ChatRequest};
use super::completion::Prompt;
use super::fields::{Fields, Ignored, Problems};
use super::generation;
use crate::wire::error::ApiError;

/// The maximum number of tokens in a request.
const TOKENS: usize = 1 << 20;

/// The input to tokenize.
#[derive(Clone, Debug)]
pub enum Tokenized {
    /// A text.
    Prompt(Prompt, Ignored),
    /// A conversation.
    Chat(Box<ChatRequest>),
}

/// Reads a request for tokens: a `prompt`, or `messages` with any other field of a chat.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read(body: &[u8]) -> Result<Tokenized, ApiError> {
    let map = super::object(body)?;
    if map.contains_key("messages") {
        return chat::read(body).map(Box::new).map(Tokenized::Chat);
    }
    let mut fields = Fields::root(map);
    let mut problems = Problems::default();
    let prompt = fields.string("prompt", &mut problems);
    if prompt.is_none() {
        problems.invalid("prompt", "expected a text, or messages");
    }
    let table: &[(&str, &[&str])] = &[
        ("add_special_tokens", &["true"]),
        ("return_token_strs", &["false"]),
    ];
    fields.only_neutral(table, &mut problems);
    fields.ignore(&["model"]);
    fields.finish(&mut problems);
    let ignored = problems.check()?;
    let prompt = Prompt::Text(prompt.unwrap_or_default());
    Ok(Tokenized::Prompt(prompt, ignored))
}

/// Reads a request for the text of tokens.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read_tokens(body: &[u8]) -> Result<(Vec<u32>, Ignored), ApiError> {
    let mut fields = Fields::root(super::object(body)?);
    let mut problems = Problems::default();
    let items = fields.array("tokens", &mut problems).unwrap_or_default();
    let tokens: Vec<u32> = items.iter().filter_map(generation::token_id).collect();
    if tokens.is_empty() || tokens.len() != items.len() || tokens.len() > TOKENS {
        problems.invalid("tokens", format!("expected 1 to {TOKENS} token numbers"));
    }
    fields.ignore(&["model"]);
    fields.finish(&mut problems);
    Ok((tokens, problems.check()?))
}
