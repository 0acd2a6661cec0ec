//! From a checked request to the input of the engine: tokens, a compiled grammar, sampling.
//!
//! All of this is CPU-bound work (parsing, compiling, rendering, tokenizing), so it runs on a thread that
//! may block, never on one that serves connections.

use lexiform::error::{Place, Problem, ProblemKind};
use lexiform::limits::Limits;
use lexiform::vocab::TokenKind;
use lexiform_chat::{ChatTemplate, Conversation, Ending, TemplateError};
use lexiform_engine::{OnBudget, Request, Task};
use serde_json::Value;

use crate::grammars::enforcement;
use crate::grammars::interest::Interest;
use crate::grammars::language::Language;
use crate::grammars::store::Compiled;
use crate::grammars::tool_format::ToolFormat;
use crate::model::served::ServedModel;
use crate::operate::random;
use crate::request::tokenization::{PromptTokenizer, TextKind};
use crate::request::{permission, thoughts, told};
use crate::wire::chat::{ChatRequest, Message};
use crate::wire::completion::Prompt;
use crate::wire::constraint::Constraint;
use crate::wire::error::ApiError;
use crate::wire::generation::Generation;
use crate::wire::tools::{Callable, Calls, Input, Mode};

/// A conversation as the model reads it, and the language of the answer.
pub struct Chat {
    /// The tokens of the conversation.
    pub tokens: Vec<u32>,
    /// Its text, and who wrote it; `None` if the model has no chat template.
    pub prompt: Option<lexiform_chat::Prompt>,
    /// The language of the answer.
    pub language: Language,
}

/// Returns the tokens of a conversation, and the language of its answer.
///
/// # Errors
/// Fails if the model has no chat template, its template refuses the conversation, or it is too long.
pub fn of_chat(
    served: &ServedModel,
    request: &ChatRequest,
    mut cutting: PromptTokenizer<'_>,
) -> Result<Chat, ApiError> {
    cutting.check_bytes(request.bytes())?;
    let Some(template) = &served.text().template else {
        let message = "This model has no chat template; use /v1/completions.";
        return Err(ApiError::invalid(
            "no_chat_template",
            Some("messages".to_owned()),
            message,
        ));
    };
    let calls = request.calls.clone();
    let (calls, tool_format) = calls
        .map(|calls| framed(calls, template, served.tool_format()))
        .unzip();
    let mut language = Language {
        content: request.generation.constraint.clone(),
        calls,
        tool_format: tool_format.unwrap_or_default(),
        ..Language::default()
    };
    let told = told::of(template, request, &language);
    let messages = told.within(&request.messages);
    let messages: Vec<Value> = messages.iter().map(Message::to_json).collect();
    let conversation = Conversation {
        messages: &messages,
        ending: if request.continues {
            Ending::Open
        } else {
            Ending::Answer
        },
        tools: told.tools,
        schema: told.schema.as_deref(),
        arguments: &request.template_arguments,
        arguments_name: "chat_template_kwargs",
        now: random::now(),
    };
    let prompt = template.render(&conversation).map_err(|error| refused(&error))?;
    thoughts::begin(served, request, prompt.ending(), &mut language)?;
    cutting.prompt(&prompt)?;
    let tokens = cutting.tokens();
    let prompt = Some(prompt);
    Ok(Chat {
        tokens,
        prompt,
        language,
    })
}

/// Refuses constraints that are longer than any source may be, before anything is made of them: a copy, a
/// sketch for the prompt, a hash.
///
/// # Errors
/// Fails if one is too long.
pub fn check_sources<'a>(constraints: impl Iterator<Item = &'a Constraint>) -> Result<(), ApiError> {
    let most = Limits::default().source_bytes;
    for constraint in constraints {
        let bytes = constraint.source.bytes();
        if bytes > most {
            let message = format!("the source has {bytes} bytes; the limit `source_bytes` is {most}");
            let error = Problem::new(ProblemKind::Limit, Place::Whole, message).into();
            return Err(ApiError::constraint(&constraint.subject(), &error));
        }
    }
    Ok(())
}

/// Decides whether required calls are written in a frame, and in which format. A model that was trained to
/// call tools writes the frame of a call, even if the call is required; if it was also trained to obey
/// schemas, a required call is instead an answer under the tool's schema. The formats of models have no
/// place for the input of custom tools.
fn framed(mut calls: Calls, template: &ChatTemplate, format: ToolFormat) -> (Calls, ToolFormat) {
    let format = match calls.tools.iter().any(Callable::is_custom) {
        true => ToolFormat::Any,
        false => format,
    };
    let obeys = matches!(
        calls.tools[..],
        [Callable {
            input: Input::Arguments(_),
            ..
        }]
    );
    let is_trained = template.takes_tools() || format != ToolFormat::Any;
    if calls.mode == Mode::Bare && (!is_trained || (obeys && template.takes_schema())) {
        return (calls, ToolFormat::Any);
    }
    if calls.mode == Mode::Bare {
        (calls.mode, calls.parallel) = (Mode::Required, false);
    }
    if let Some(frame) = format.frames().first() {
        for constraint in calls.constraints() {
            constraint.arguments = frame.style;
            constraint.excludes = frame.excludes.iter().map(|&text| text.to_owned()).collect();
        }
    }
    (calls, format)
}

/// Replaces the identity of a registered constraint by the constraint.
///
/// # Errors
/// Fails if it is not registered here.
pub fn resolve(
    served: &ServedModel,
    generation: &mut Generation,
    interest: &Interest,
) -> Result<(), ApiError> {
    if let Some(id) = &generation.grammar_id {
        generation.constraint = Some(registered(served, id, interest)?);
    }
    Ok(())
}

/// Returns a constraint that the owner of the request registered.
///
/// # Errors
/// Fails if it is not registered here, or was registered by another owner.
pub fn registered(served: &ServedModel, id: &str, interest: &Interest) -> Result<Constraint, ApiError> {
    let found = served.grammars().registered(id, interest.requester());
    found.ok_or_else(|| ApiError::unknown_grammar(id))
}

/// Returns the tokens of a completion's prompt.
///
/// # Errors
/// Fails if the vocabulary cannot write the text, or if it is too long.
pub fn of_text(
    served: &ServedModel,
    prompt: &Prompt,
    mut cutting: PromptTokenizer<'_>,
) -> Result<Vec<u32>, ApiError> {
    match prompt {
        Prompt::Tokens(tokens) => Ok(tokens.clone()),
        Prompt::Text(text) => {
            cutting.push(served.text().tokenizer.opening());
            cutting.text(text, TextKind::Plain)?;
            Ok(cutting.tokens())
        }
    }
}

/// Returns the text of a completion's prompt. Tokens that write no text are left out.
pub fn echoed(served: &ServedModel, prompt: &Prompt) -> String {
    match prompt {
        Prompt::Text(text) => text.clone(),
        Prompt::Tokens(tokens) => {
            let vocabulary = served.vocabulary();
            let is_text = |&&token: &&u32| {
                (token as usize) < vocabulary.len() && vocabulary.kind(token) == TokenKind::Text
            };
            let bytes = tokens
                .iter()
                .filter(is_text)
                .flat_map(|&token| vocabulary.bytes(token));
            String::from_utf8_lossy(&bytes.copied().collect::<Vec<u8>>()).into_owned()
        }
    }
}

fn refused(error: &TemplateError) -> ApiError {
    ApiError::invalid("invalid_messages", Some("messages".to_owned()), error.to_string())
}

/// Returns the grammar of a language, or `None` if the language is free.
///
/// # Errors
/// Fails if one of its constraints does not compile, requires more than is enforced or is not allowed to the
/// key of the request, or if the interest was lost.
pub fn compiled(
    served: &ServedModel,
    language: &Language,
    interest: &Interest,
) -> Result<Option<Compiled>, ApiError> {
    permission::check_language(language, interest)?;
    served.limits().check_accepted(language.constraints())?;
    if language.is_free() {
        return Ok(None);
    }
    let compiled = grammar(served, language, interest)?;
    let unkept = enforcement::unkept(language, &compiled);
    if unkept.is_empty() {
        return Ok(Some(compiled));
    }
    let all = unkept
        .iter()
        .map(|rejected| (rejected.constraint.subject(), &rejected.error));
    Err(ApiError::constraints(&all.collect::<Vec<_>>()))
}

/// Lets these requests obey the grammar of free text if they have to go on after its end, or if their
/// thoughts are imposed or limited: without masks a model may end a text anywhere, and think as it likes.
/// They are cut after `max_tokens`, as free text is.
///
/// # Errors
/// Fails if the interest was lost.
pub fn keep_going(
    served: &ServedModel,
    language: &Language,
    (requests, thought_tokens): (&mut [Request], Option<usize>),
    interest: &Interest,
) -> Result<(), ApiError> {
    let thinks = thoughts::needs_grammar(language, thought_tokens);
    let needs = |request: &Request| {
        (request.limits.min_tokens > 0 || thinks) && request.constraints.grammar.is_none()
    };
    if !language.is_free() || !requests.iter().any(needs) {
        return Ok(());
    }
    let compiled = grammar(served, language, interest)?;
    for request in requests.iter_mut().filter(|request| needs(request)) {
        request.constraints.grammar = Some(compiled.grammar.clone());
        // The other laws are about whole texts.
        let is_local = matches!(&request.task, Task::Draw(draw) if draw.law.is_local());
        if request.limits.on_budget == OnBudget::Complete && is_local {
            request.limits.on_budget = OnBudget::Cut;
        }
    }
    Ok(())
}

/// Returns the grammar of a language, free or not; blocks while it compiles.
fn grammar(served: &ServedModel, language: &Language, interest: &Interest) -> Result<Compiled, ApiError> {
    let compiled = served.grammars().get(language, interest, served.metrics());
    compiled
        .ok_or_else(ApiError::nobody_waits)?
        .map_err(|rejected| ApiError::constraint(&rejected.constraint.subject(), &rejected.error))
}
