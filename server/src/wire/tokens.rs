//! `POST /tokenize` and `POST /detokenize`: the requests.

use lexiform_chat::{Prompt as Rendered, Writer};
use serde_json::{Value, json};

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

/// Returns who wrote which part of a prompt. The texts of the parts are the text of the prompt, and their
/// places are counted in characters. A system message that the service put before the request's
/// messages shifts their places in the conversation, not in the request.
pub fn spans(prompt: &Rendered, messages: usize) -> Value {
    let mut start = 0;
    let spans = prompt.spans().map(|span| {
        let text = &prompt.text()[span.range];
        let end = start + text.chars().count();
        let mut told = json!({"start": start, "end": end, "from": "template", "text": text});
        if let Writer::Request(pointer) = span.writer {
            told["from"] = "request".into();
            told["pointer"] = in_request(pointer, prompt.messages().saturating_sub(messages)).into();
        }
        start = end;
        told
    });
    spans.collect()
}

/// Returns the place in the request of a place in the conversation before whose messages the service put
/// others.
fn in_request(pointer: &str, added: usize) -> String {
    let message = pointer.strip_prefix("/messages/").filter(|_| added > 0);
    let Some((at, rest)) = message.and_then(|message| message.split_once('/')) else {
        return pointer.to_owned();
    };
    match at.parse::<usize>().ok().and_then(|at| at.checked_sub(added)) {
        Some(at) => format!("/messages/{at}/{rest}"),
        None => String::new(),
    }
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
