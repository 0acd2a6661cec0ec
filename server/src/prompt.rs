//! From a checked request to what the engine takes: tokens, a compiled grammar, sampling.
//!
//! All of this is work for the processor (parsing, compiling, rendering, tokenizing), so it runs on a thread that may
//! block, never on one that serves connections.

use lexiform_engine::{LawChoice, Request, Sampling, Speculation};
use serde_json::Value;

use crate::error::ApiError;
use crate::served::Served;
use crate::template::{ChatTemplate, Conversation, Piece, TemplateError};
use crate::wire::chat::{ChatRequest, Message};
use crate::wire::completion::Prompt;
use crate::wire::constraint::Source;
use crate::wire::generation::{Generation, Law, SchemaInPrompt};

/// Attempts of the global law before it gives up.
const ATTEMPTS: usize = 1_000;

/// Checks that the request asks for the model that is served.
///
/// # Errors
/// It asks for another one.
pub fn check_model(served: &Served, generation: &Generation) -> Result<(), ApiError> {
    if generation.model == served.name() {
        Ok(())
    } else {
        Err(ApiError::unknown_model(&generation.model))
    }
}

/// The tokens of a conversation.
///
/// # Errors
/// The model has no chat template, or its template refuses the conversation.
pub fn of_chat(served: &Served, request: &ChatRequest) -> Result<Vec<u32>, ApiError> {
    let Some(template) = &served.text().template else {
        let message = "This model has no chat template; use /v1/completions.";
        return Err(ApiError::invalid(
            "no_chat_template",
            Some("messages".to_owned()),
            message,
        ));
    };
    let schema = shown_schema(template, &request.generation);
    let told = told_constraint(template, &request.generation);
    let messages = told.map_or_else(
        || request.messages.clone(),
        |told| with_instructions(&request.messages, &told),
    );
    let conversation = Conversation {
        messages: &messages,
        tools: &request.tools,
        schema: schema.as_deref(),
        arguments: &request.template_arguments,
    };
    let pieces = template.render(&conversation).map_err(|error| refused(&error))?;
    let tokenizer = &served.text().tokenizer;
    let mut tokens = Vec::new();
    for piece in pieces {
        let encoded = match &piece {
            Piece::Template(text) => tokenizer.encode_with_special(text),
            Piece::Plain(text) => tokenizer.encode(text),
        };
        tokens.extend(encoded.map_err(|error| unwritable("messages", &error))?);
    }
    Ok(tokens)
}

/// The tokens of a completion's prompt.
///
/// # Errors
/// The vocabulary cannot write the text, or a token does not exist.
pub fn of_text(served: &Served, prompt: &Prompt) -> Result<Vec<u32>, ApiError> {
    match prompt {
        Prompt::Tokens(tokens) => Ok(tokens.clone()),
        Prompt::Text(text) => {
            let tokenizer = &served.text().tokenizer;
            let mut tokens = tokenizer.opening().to_vec();
            tokens.extend(
                tokenizer
                    .encode_plain(text)
                    .map_err(|error| unwritable("prompt", &error))?,
            );
            Ok(tokens)
        }
    }
}

fn refused(error: &TemplateError) -> ApiError {
    ApiError::invalid("invalid_messages", Some("messages".to_owned()), error.to_string())
}

fn unwritable(param: &str, error: &lexiform::vocab::TokenizerError) -> ApiError {
    ApiError::invalid("invalid_value", Some(param.to_owned()), error.to_string())
}

/// The short form of the schema, if the template has a place for it and the request lets the model see it.
fn shown_schema(template: &ChatTemplate, generation: &Generation) -> Option<String> {
    if generation.schema_in_prompt == SchemaInPrompt::Never || !template.takes_schema() {
        return None;
    }
    match &generation.constraint.as_ref()?.source {
        Source::Schema(text) => {
            let schema: Value = serde_json::from_str(text).ok()?;
            Some(lexiform::schema::sketch::sketch(&schema))
        }
        _ => None,
    }
}

/// What the system message must say about the constraint: asked for by `always`, where the template has no place.
fn told_constraint(template: &ChatTemplate, generation: &Generation) -> Option<String> {
    if generation.schema_in_prompt != SchemaInPrompt::Always {
        return None;
    }
    match &generation.constraint.as_ref()?.source {
        Source::Schema(_) if template.takes_schema() => None,
        Source::Schema(text) => Some(format!("Answer with JSON that obeys this JSON Schema:\n{text}")),
        Source::Regex(text) => Some(format!(
            "Answer with a text that matches this regular expression:\n{text}"
        )),
        Source::Ebnf(text) => Some(format!("Answer with a text of this grammar:\n{text}")),
    }
}

/// The conversation with one more instruction in its system message, which is made if there is none.
fn with_instructions(messages: &[Message], instructions: &str) -> Vec<Message> {
    let mut messages = messages.to_vec();
    match messages.first_mut().filter(|first| first.role == "system") {
        Some(system) => {
            let before = system.content.take().unwrap_or_default();
            system.content = Some(format!("{before}\n\n{instructions}"));
        }
        None => {
            let content = Some(instructions.to_owned());
            messages.insert(
                0,
                Message {
                    role: "system".to_owned(),
                    content,
                    ..Message::default()
                },
            );
        }
    }
    messages
}

/// One engine request for each sample: prompt by prompt, `n` samples each.
///
/// # Errors
/// The constraint does not compile, or a prompt leaves no room for an answer.
pub fn engine_requests(
    served: &Served,
    generation: &Generation,
    prompts: Vec<Vec<u32>>,
    logprobs: Option<u8>,
) -> Result<Vec<Request>, ApiError> {
    let grammar = match &generation.constraint {
        None => None,
        Some(constraint) => {
            let compiled = served.grammars().get(constraint, served.metrics());
            Some(compiled.map_err(|error| ApiError::constraint(&constraint.subject(), &error))?)
        }
    };
    check_tokens(served, generation)?;
    let seed = generation.seed.unwrap_or_else(crate::chance::seed);
    let mut requests = Vec::with_capacity(prompts.len() * generation.n);
    for prompt in prompts {
        let max_tokens = room(served, prompt.len(), generation.max_tokens)?;
        for _ in 0..generation.n {
            let sampling = sampling(served, generation, seed.wrapping_add(requests.len() as u64));
            requests.push(Request {
                prompt: prompt.clone(),
                grammar: grammar.clone(),
                sampling,
                max_tokens,
                law: match generation.law {
                    Law::Local => LawChoice::Local,
                    Law::Global => LawChoice::Global {
                        max_attempts: ATTEMPTS,
                    },
                },
                speculation: if generation.draft {
                    Speculation::all()
                } else {
                    Speculation::none()
                },
                logprobs,
                stop_tokens: generation.stop_tokens.clone(),
                ignore_eos: false,
                weigh_end: false,
            });
        }
    }
    Ok(requests)
}

/// How many tokens an answer may have. `max_tokens` is an upper bound, so a larger one than there is room for is cut.
fn room(served: &Served, prompt: usize, wanted: Option<usize>) -> Result<usize, ApiError> {
    let context = served.engine().max_context();
    let room = context.saturating_sub(prompt);
    if room == 0 {
        let message = format!(
            "This model's maximum context length is {context} tokens, but the prompt alone has {prompt} tokens."
        );
        return Err(ApiError::invalid(
            "context_length_exceeded",
            Some("messages".to_owned()),
            message,
        ));
    }
    Ok(wanted.unwrap_or(room).min(room))
}

fn check_tokens(served: &Served, generation: &Generation) -> Result<(), ApiError> {
    let len = served.vocabulary().len();
    let biased = generation
        .logit_bias
        .iter()
        .map(|(token, _)| ("logit_bias", *token));
    let stops = generation
        .stop_tokens
        .iter()
        .map(|token| ("stop_token_ids", *token));
    match biased.chain(stops).find(|(_, token)| *token as usize >= len) {
        None => Ok(()),
        Some((param, token)) => {
            let message = format!("{param}: there is no token {token}; the vocabulary has {len} tokens.");
            Err(ApiError::invalid(
                "invalid_value",
                Some(param.to_owned()),
                message,
            ))
        }
    }
}

fn sampling(served: &Served, generation: &Generation, seed: u64) -> Sampling {
    let defaults = served.text().defaults;
    Sampling {
        temperature: generation.temperature.unwrap_or(defaults.temperature),
        // Zero is allowed by the API and means the smallest nucleus, a single token.
        top_p: generation.top_p.unwrap_or(defaults.top_p).max(f32::MIN_POSITIVE),
        top_k: generation.top_k.map_or(defaults.top_k, |k| (k > 0).then_some(k)),
        min_p: generation.min_p.unwrap_or(defaults.min_p),
        seed,
        presence_penalty: generation.presence_penalty,
        frequency_penalty: generation.frequency_penalty,
        logit_bias: generation.logit_bias.clone(),
    }
}
