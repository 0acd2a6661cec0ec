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
/// messages shifts their places in the conversation, not in the request. `controls` are the names of the
/// control tokens of the prompt, in their order.
pub fn spans<'t>(prompt: &Rendered, messages: usize, controls: impl Iterator<Item = &'t str>) -> Value {
    let added = prompt.messages().saturating_sub(messages);
    let mut start = 0;
    let spans = prompt.spans().map(|span| {
        let text = &prompt.text()[span.range];
        let end = start + text.chars().count();
        let mut told = json!({"start": start, "end": end, "from": "template", "text": text});
        if let Writer::Request(pointer) = span.writer {
            told["from"] = "request".into();
            told["pointer"] = in_request(pointer, added).into();
        }
        start = end;
        told
    });
    let mut spans: Vec<Value> = spans.collect();
    mark_controls(&mut spans, controls);
    spans.into()
}

/// The maximum number of control tokens that are in no part of the template: the tokenizer adds one at the
/// beginning or end.
const ADDED_CONTROLS: usize = 8;

/// Adds the places of the control tokens to the parts that the template wrote, where alone they are
/// recognised.
fn mark_controls<'t>(spans: &mut [Value], controls: impl Iterator<Item = &'t str>) {
    let mut added = 0;
    // The next part, and the byte and the character in it from which the next token is looked for.
    let (mut part, mut byte, mut character) = (0, 0, 0);
    for control in controls.filter(|control| !control.is_empty()) {
        let rest = spans.iter().enumerate().skip(part);
        let mut places = rest
            .filter(|(_, span)| span["from"] == "template")
            .filter_map(|(at, span)| {
                let from = if at == part { byte } else { 0 };
                Some((at, from, from + span["text"].as_str()?[from..].find(control)?))
            });
        let Some((at, from, place)) = places.next() else {
            added += 1;
            if added > ADDED_CONTROLS {
                return;
            }
            continue;
        };
        let text = spans[at]["text"].as_str().unwrap_or_default();
        let begin = if at == part { character } else { 0 } + text[from..place].chars().count();
        (part, byte, character) = (at, place + control.len(), begin + control.chars().count());
        let start = spans[at]["start"].as_u64().unwrap_or(0) as usize;
        let found = json!({"start": start + begin, "end": start + character});
        match spans[at].get_mut("control_tokens").and_then(Value::as_array_mut) {
            Some(known) => known.push(found),
            None => spans[at]["control_tokens"] = json!([found]),
        }
    }
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
