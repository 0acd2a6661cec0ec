//! From a body to what the engine takes and the frame of the answer, one function for each generating route.
//!
//! The command line goes the same way, so it can do what the service can do.

use std::sync::Arc;
use std::time::Duration;

use lexiform_engine::Request;

use crate::answer::chat::ChatWriter;
use crate::answer::responses::ResponsesWriter;
use crate::answer::text::TextWriter;
use crate::answer::{Base, Frame, Writer};
use crate::certify::Certifier;
use crate::channels::Reading;
use crate::error::ApiError;
use crate::grammars::Compiled;
use crate::language::Language;
use crate::prompt;
use crate::served::Served;
use crate::wire;
use crate::wire::chat::ChatRequest;
use crate::wire::generation::Generation;
use crate::wire::responses::ResponsesRequest;

/// A request that was checked completely; nothing has been generated yet.
pub struct Prepared {
    /// The samples.
    pub requests: Vec<Request>,
    /// The shape of the answer.
    pub frame: Frame,
    /// Whether it is streamed.
    pub stream: bool,
    /// The identity of the grammar, for the audit.
    pub grammar: Option<String>,
    /// Whether all of the constraint is enforced, if there is one.
    pub enforced: Option<&'static str>,
    /// How long the client wants to wait.
    pub timeout: Option<Duration>,
}

/// Prepares a chat.
///
/// # Errors
/// The request is wrong.
pub fn chat(served: &Arc<Served>, body: &[u8]) -> Result<Prepared, ApiError> {
    let mut request = wire::chat::read(body)?;
    prompt::resolve(served, &mut request.generation)?;
    conversation(served, &request, |reading, compiled| {
        Box::new(ChatWriter::new(
            Base::new("chatcmpl-", served, compiled),
            reading,
            request.generation.stream.unwrap_or_default(),
            request.logprobs.is_some(),
            request.include_reasoning,
        ))
    })
}

/// Prepares a response.
///
/// # Errors
/// The request is wrong.
pub fn response(served: &Arc<Served>, body: &[u8]) -> Result<Prepared, ApiError> {
    let ResponsesRequest { mut chat, repeated } = wire::responses::read(body)?;
    prompt::resolve(served, &mut chat.generation)?;
    conversation(served, &chat, |reading, compiled| {
        let logprobs = chat.logprobs.is_some();
        Box::new(ResponsesWriter::new(
            Base::new("resp_", served, compiled),
            reading,
            repeated,
            logprobs,
        ))
    })
}

/// Prepares a conversation, to be answered in the shapes of this writer.
fn conversation(
    served: &Arc<Served>,
    request: &ChatRequest,
    writer: impl FnOnce(Arc<Reading>, Option<&Compiled>) -> Box<dyn Writer>,
) -> Result<Prepared, ApiError> {
    let generation = &request.generation;
    prompt::check_model(served, generation)?;
    let chat = prompt::of_chat(served, request)?;
    let compiled = prompt::compiled(served, &chat.language)?;
    let grammar = compiled.as_ref().map(|compiled| &compiled.grammar);
    let requests = prompt::engine_requests(served, generation, vec![chat.tokens], grammar, request.logprobs)?;
    let language = chat.language;
    let reading = Arc::new(Reading::of(&language));
    let mut frame = Frame::new(
        served.clone(),
        writer(reading.clone(), compiled.as_ref()),
        reading,
        generation,
        requests.len(),
        request.logprobs.is_some(),
    );
    if request.token_details {
        frame.watch(compiled.as_ref().map(|compiled| &compiled.grammar));
    }
    frame.certify(certifier(generation, &language, compiled.as_ref()));
    Ok(Prepared {
        requests,
        frame,
        stream: generation.stream.is_some(),
        enforced: compiled.as_ref().map(wire::grammars::enforced),
        grammar: compiled.map(|compiled| compiled.id.to_string()),
        timeout: generation.timeout,
    })
}

/// Prepares a completion.
///
/// # Errors
/// The request is wrong.
pub fn completion(served: &Arc<Served>, body: &[u8]) -> Result<Prepared, ApiError> {
    let mut request = wire::completion::read(body)?;
    prompt::resolve(served, &mut request.generation)?;
    let generation = &request.generation;
    prompt::check_model(served, generation)?;
    let prompts = request
        .prompts
        .iter()
        .map(|prompt| prompt::of_text(served, prompt));
    let prompts: Vec<Vec<u32>> = prompts.collect::<Result<_, _>>()?;
    let language = Language {
        content: generation.constraint.clone(),
        ..Language::default()
    };
    let compiled = prompt::compiled(served, &language)?;
    let grammar = compiled.as_ref().map(|compiled| &compiled.grammar);
    let requests = prompt::engine_requests(served, generation, prompts, grammar, request.logprobs)?;
    let logprobs = request.logprobs.is_some();
    let options = generation.stream.unwrap_or_default();
    let writer = TextWriter::new(Base::new("cmpl-", served, compiled.as_ref()), options, logprobs);
    let mut frame = Frame::new(
        served.clone(),
        Box::new(writer),
        Arc::new(Reading::default()),
        generation,
        requests.len(),
        logprobs,
    );
    frame.certify(certifier(generation, &language, compiled.as_ref()));
    Ok(Prepared {
        requests,
        frame,
        stream: generation.stream.is_some(),
        enforced: compiled.as_ref().map(wire::grammars::enforced),
        grammar: compiled.map(|compiled| compiled.id.to_string()),
        timeout: generation.timeout,
    })
}

fn certifier(generation: &Generation, language: &Language, compiled: Option<&Compiled>) -> Option<Certifier> {
    let compiled = compiled.filter(|_| generation.certificate)?;
    Some(Certifier::new(language, &compiled.grammar, &compiled.id))
}
