//! Preparation of requests: from a body to the requests of the engine and the builder of the answer, with one
//! function for each generating route.
//!
//! The command line uses these functions too, so it can do everything that the service can.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lexiform_engine::{ContrastWith, Request};
use serde_json::Value;

use crate::answer::builder::AnswerBuilder;
use crate::answer::certificate::Certifier;
use crate::answer::chat::ChatWriter;
use crate::answer::completion::TextWriter;
use crate::answer::parts::{OutputFormat, continued, judged};
use crate::answer::responses::ResponsesWriter;
use crate::answer::rewriting::RewriteWriter;
use crate::answer::sample::Extras;
use crate::answer::writer::{Base, Writer};
use crate::grammars::interest::Interest;
use crate::grammars::language::Language;
use crate::grammars::store::Compiled;
use crate::grammars::{enforcement, report, thought};
use crate::model::running::refused;
use crate::model::served::ServedModel;
use crate::request::continuing::Begun;
use crate::request::tokenization::{PromptTokenizer, TextKind};
use crate::request::{
    contrast, engine_request, healing, infilling, monitors, penalties, permission, prompt, rewriting,
    thoughts,
};
use crate::wire;
use crate::wire::chat::ChatRequest;
use crate::wire::constraint::Constraint;
use crate::wire::error::ApiError;
use crate::wire::fields::Ignored;
use crate::wire::generation::Generation;
use crate::wire::grammars::Named;
use crate::wire::grammars::repair::{INSIDE, RepairRequest, Rewrite};
use crate::wire::response::Enforcement;
use crate::wire::responses::ResponsesRequest;

/// A request that has been checked completely, before anything is generated.
pub struct Prepared {
    /// The engine's requests, one for each prompt.
    pub requests: Vec<Request>,
    /// The builder of the answer.
    pub frame: AnswerBuilder,
    /// `true` if the answer is streamed.
    pub stream: bool,
    /// `true` if the stream can be resumed over another connection.
    pub resumable: bool,
    /// The identity of the grammar, for the audit log.
    pub grammar: Option<String>,
    /// The size of the constraint's sources in bytes.
    pub source_bytes: usize,
    /// The way in which the constraint is enforced, if there is one.
    pub enforced: Option<&'static str>,
    /// `true` if the constraint came in a field that only older clients send.
    pub deprecated: bool,
    /// The fields of the request that have no meaning here.
    pub ignored: Ignored,
    /// The time for which the client is willing to wait.
    pub timeout: Option<Duration>,
    /// The time at which the request had been read and compilation of its constraint began.
    pub compile_begun: Instant,
    /// The time taken to compile the constraint, or to wait for another request that compiled it, and to find
    /// the length of the shortest answer.
    pub compiling: Duration,
}

/// A function that prepares a request of some route from its body, as long as the client is interested.
pub type Prepare = fn(&Arc<ServedModel>, &[u8], &Interest) -> Result<Prepared, ApiError>;

/// The outcome of a request.
pub enum Reply {
    /// An answer without the model, and the fields of the request that have no meaning here.
    Told(Value, Ignored),
    /// A request that the model is to answer.
    Generated(Box<Prepared>),
}

/// The place where the answers of a request begin.
enum Boundary {
    /// After the prompts.
    Prompt,
    /// At a place before the ends of the prompts that no token could span; the prompts are healed.
    Healed,
    /// After the prompts, which end with this text of the answers.
    Begun(Begun),
}

/// The prompts of a request.
struct Prompts {
    all: Vec<Vec<u32>>,
    boundary: Boundary,
    /// What the answers are contrasted with.
    contrast: Option<ContrastWith>,
    /// The most tokens of a thought.
    thought_tokens: Option<usize>,
}

impl From<Vec<Vec<u32>>> for Prompts {
    fn from(all: Vec<Vec<u32>>) -> Self {
        Prompts {
            all,
            boundary: Boundary::Prompt,
            contrast: None,
            thought_tokens: None,
        }
    }
}

/// The engine's requests, and the constraint that they obey.
struct SampleRequest {
    requests: Vec<Request>,
    language: Language,
    compiled: Option<Compiled>,
    enforcement: Option<Enforcement>,
    compile_begun: Instant,
    compiling: Duration,
}

impl SampleRequest {
    /// Creates the requests for these prompts, whose answers are in this language.
    fn new(
        served: &ServedModel,
        generation: &Generation,
        Prompts {
            all,
            boundary,
            contrast,
            thought_tokens,
        }: Prompts,
        language: Language,
        logprobs: Option<u8>,
        interest: &Interest,
    ) -> Result<Self, ApiError> {
        permission::check(generation, interest)?;
        let begun = Instant::now();
        let mut compiled = prompt::compiled(served, &language, interest)?;
        if let (Boundary::Begun(begun), Some(compiled)) = (&boundary, &mut compiled) {
            compiled.grammar = begun.rest(&compiled.grammar)?;
        }
        let grammar = compiled.as_ref().map(|compiled| &compiled.grammar);
        let mut requests =
            engine_request::engine_requests(served, generation, (all, contrast.as_ref()), grammar, logprobs)?;
        match &boundary {
            Boundary::Prompt => {}
            Boundary::Healed => healing::heal(served, &language, &mut requests, interest)?,
            Boundary::Begun(begun) => begun.mark(&mut requests),
        }
        prompt::keep_going(served, &language, (&mut requests, thought_tokens), interest)?;
        thoughts::limit(&language, &mut requests, thought_tokens)?;
        let mut monitors = monitors::of(served, generation, &language, interest)?;
        let format = Arc::new(OutputFormat::of(&language, compiled.as_ref()));
        // After those that compute: what they refuse is not asked about.
        let (callbacks, tilt) = judged::of(served, generation, &format)?;
        let waits = !callbacks.is_empty() || tilt.is_some();
        monitors.extend(callbacks);
        let penalty_scope = penalties::scope(generation, &language)?;
        for request in &mut requests {
            request.sampling.penalty_scope = penalty_scope;
            request.constraints.monitors.clone_from(&monitors);
            request.constraints.tilt.clone_from(&tilt);
            if waits {
                request.constraints.monitor_time = served.callbacks().patience();
            }
        }
        // The engine checks again, on a thread that serves connections; by then the grammar has cached the
        // result.
        for request in &requests {
            served
                .engine()
                .check(request)
                .map_err(|refusal| refused(&refusal))?;
        }
        let report = |compiled| enforcement::report(&language, compiled, generation.extent, interest);
        let enforcement = compiled.as_ref().map(report).transpose()?;
        let compiling = begun.elapsed();
        Ok(Self {
            requests,
            language,
            compiled,
            enforcement,
            compile_begun: begun,
            compiling,
        })
    }

    /// Returns the prepared request, whose answer this writer writes.
    fn prepared(
        self,
        served: &Arc<ServedModel>,
        generation: &Generation,
        (extras, reading): (Extras, Arc<OutputFormat>),
        (writer, ignored): (Box<dyn Writer>, Ignored),
    ) -> Prepared {
        let compiled = self.compiled.as_ref();
        let extras = Extras {
            confidence: generation.confidence,
            enum_scores: generation.enum_scores,
            mode: generation.logprobs_mode,
            ..extras
        };
        let mut frame = AnswerBuilder::new(
            served.clone(),
            writer,
            reading,
            generation,
            self.requests.iter().map(|request| request.task.answers()).sum(),
            extras,
        );
        if let Some(details) = extras.details {
            let grammar = compiled.filter(|_| details.places);
            frame.watch(grammar.map(|compiled| &compiled.grammar), details);
        }
        let shown = compiled.filter(|_| self.language.shows_marks());
        let mut marks = shown.map_or_else(Vec::new, |compiled| compiled.grammar.specials().to_vec());
        if !self.language.thought.is_absent() {
            marks.extend(thought::tokens(&self.language.marks, served.vocabulary()));
        }
        frame.show(&marks);
        frame.heal(&self.requests);
        frame.judge_stops(&self.requests);
        frame.certify(
            compiled
                .filter(|_| generation.certificate)
                .map(|compiled| Certifier::new(&self.language, compiled, served)),
        );
        Prepared {
            frame,
            stream: generation.stream.is_some(),
            resumable: generation.stream.is_some_and(|options| options.resumable),
            enforced: compiled.map(report::enforced),
            deprecated: (generation.constraint.as_ref()).is_some_and(Constraint::is_deprecated),
            grammar: compiled.map(|compiled| compiled.id.to_string()),
            source_bytes: compiled.map_or(0, |_| self.language.source_bytes()),
            ignored,
            timeout: generation.timeout,
            requests: self.requests,
            compile_begun: self.compile_begun,
            compiling: self.compiling,
        }
    }
}

/// Prepares a chat.
///
/// # Errors
/// Fails if the request is invalid.
pub fn chat(served: &Arc<ServedModel>, body: &[u8], interest: &Interest) -> Result<Prepared, ApiError> {
    let mut request = wire::chat::read(body)?;
    prompt::check_sources(request.constraints())?;
    prompt::resolve(served, &mut request.generation, interest)?;
    note_ineffective(served, &mut request);
    conversation(served, &request, interest, |enforcement, reading| {
        Box::new(ChatWriter::new(
            Base::new("chatcmpl-", served, enforcement, &request.ignored),
            reading,
            request.generation.stream.unwrap_or_default(),
            request.logprobs.is_some(),
            !request.reasoning.is_hidden,
        ))
    })
}

/// Prepares a response.
///
/// # Errors
/// Fails if the request is invalid.
pub fn response(served: &Arc<ServedModel>, body: &[u8], interest: &Interest) -> Result<Prepared, ApiError> {
    let ResponsesRequest { mut chat, repeated } = wire::responses::read(body)?;
    prompt::check_sources(chat.constraints())?;
    prompt::resolve(served, &mut chat.generation, interest)?;
    note_ineffective(served, &mut chat);
    conversation(served, &chat, interest, |enforcement, reading| {
        let logprobs = chat.logprobs.is_some();
        let base = Base::new("resp_", served, enforcement, &chat.ignored);
        Box::new(ResponsesWriter::new(base, reading, repeated, logprobs))
    })
}

/// Records the fields of a conversation that have no effect with the model that is served.
fn note_ineffective(served: &ServedModel, chat: &mut ChatRequest) {
    if chat.reasoning.max_tokens.is_some() && served.thought_marks().is_none() {
        chat.ignored.add("max_reasoning_tokens");
    }
    let is_constrained = chat.generation.constraint.is_some() || chat.calls.is_some();
    engine_request::note_ineffective(served, &chat.generation, is_constrained, &mut chat.ignored);
}

/// Prepares a conversation, whose answer is written by this writer.
fn conversation(
    served: &Arc<ServedModel>,
    request: &ChatRequest,
    interest: &Interest,
    writer: impl FnOnce(Option<Enforcement>, Arc<OutputFormat>) -> Box<dyn Writer>,
) -> Result<Prepared, ApiError> {
    let generation = &request.generation;
    let chat = prompt::of_chat(
        served,
        request,
        PromptTokenizer::of_prompt(served, "messages", interest),
    )?;
    let begun = Begun::of(served, request)?;
    let prompts = Prompts {
        all: vec![chat.tokens],
        boundary: begun.clone().map_or(Boundary::Prompt, Boundary::Begun),
        contrast: contrast::of_chat(served, request, interest)?,
        thought_tokens: request.reasoning.max_tokens,
    };
    let mut samples = SampleRequest::new(
        served,
        generation,
        prompts,
        chat.language,
        request.logprobs.or(request.token_details.map(|_| 0)),
        interest,
    )?;
    let details = request.token_details;
    if let Some(prediction) = request.prediction.as_ref().filter(|_| generation.copies()) {
        let mut tokens = PromptTokenizer::of_prediction(served, interest);
        tokens.text(prediction, TextKind::Exact)?;
        let tokens = tokens.tokens();
        for request in &mut samples.requests {
            request.prompt.reference.clone_from(&tokens);
        }
    }
    for request in &mut samples.requests {
        request.reporting.candidates = details.map(|details| details.top);
    }
    let reading = OutputFormat::of(&samples.language, samples.compiled.as_ref());
    let reading = Arc::new(match &begun {
        Some(begun) => continued::after(reading, &begun.text).ok_or_else(|| begun.may_call())?,
        None => reading,
    });
    let writer = writer(samples.enforcement.take(), reading.clone());
    let extras = Extras {
        logprobs: request.logprobs.is_some(),
        details,
        ..Extras::default()
    };
    let ignored = request.ignored.clone();
    Ok(samples.prepared(served, generation, (extras, reading), (writer, ignored)))
}

/// Prepares a completion.
///
/// # Errors
/// Fails if the request is invalid.
pub fn completion(served: &Arc<ServedModel>, body: &[u8], interest: &Interest) -> Result<Prepared, ApiError> {
    let mut request = wire::completion::read(body)?;
    prompt::check_sources(request.generation.constraints())?;
    prompt::resolve(served, &mut request.generation, interest)?;
    let is_constrained = request.generation.constraint.is_some();
    engine_request::note_ineffective(served, &request.generation, is_constrained, &mut request.ignored);
    let generation = &request.generation;
    let prompts = request.prompts.iter().map(|prompt| match &request.suffix {
        Some(suffix) => infilling::prompt(served, (prompt, suffix), interest),
        None => prompt::of_text(
            served,
            prompt,
            PromptTokenizer::of_prompt(served, "prompt", interest),
        ),
    });
    let prompts: Vec<Vec<u32>> = prompts.collect::<Result<_, _>>()?;
    let language = Language {
        content: generation.constraint.clone(),
        ..Language::default()
    };
    let boundary = match request.token_healing {
        true => Boundary::Healed,
        false => Boundary::Prompt,
    };
    let prompts = Prompts {
        all: prompts,
        boundary,
        contrast: contrast::of_completion(served, &request, interest)?,
        thought_tokens: None,
    };
    let mut samples = SampleRequest::new(served, generation, prompts, language, request.logprobs, interest)?;
    let extras = Extras {
        logprobs: request.logprobs.is_some(),
        ..Extras::default()
    };
    let options = generation.stream.unwrap_or_default();
    let base = Base::new("cmpl-", served, samples.enforcement.take(), &request.ignored);
    let answers = samples.requests.iter().map(|request| request.task.answers());
    let prompts = request.prompts.iter().filter(|_| request.echo).zip(answers);
    let echoed = prompts.flat_map(|(prompt, answers)| vec![prompt::echoed(served, prompt); answers]);
    let writer = TextWriter::new(base, options, extras.logprobs).echoing(echoed.collect());
    let writer = Box::new(writer);
    let ignored = request.ignored.clone();
    let reading = Arc::new(OutputFormat::of(&samples.language, samples.compiled.as_ref()));
    Ok(samples.prepared(served, generation, (extras, reading), (writer, ignored)))
}

/// Prepares a text that the model writes to replace another one, which it is shown and may repeat.
///
/// # Errors
/// Fails if the request is invalid.
pub fn rewrite(
    served: &Arc<ServedModel>,
    asked: RepairRequest,
    rewrite: Rewrite,
    interest: &Interest,
) -> Result<Prepared, ApiError> {
    let Rewrite {
        instruction,
        mut generation,
    } = rewrite;
    match asked.grammar {
        Named::Constraint(constraint) => generation.constraint = Some(constraint),
        Named::Id(id) => generation.grammar_id = Some(id),
    }
    prompt::check_sources(generation.constraints())?;
    prompt::resolve(served, &mut generation, interest)?;
    let chat = rewriting::prompt(
        served,
        (&asked.text, instruction.as_deref()),
        &generation,
        interest,
    )?;
    let prompts = vec![chat.tokens].into();
    let mut samples = SampleRequest::new(served, &generation, prompts, chat.language, None, interest)
        .map_err(|error| error.inside("rewrite", INSIDE))?;
    // The language of the text alone, without a thought before it: the draft is repaired by its grammar, and
    // the answer reports the identity of that grammar.
    let begun = Instant::now();
    let bare = Language {
        content: generation.constraint.clone(),
        ..Language::default()
    };
    let compiled = prompt::compiled(served, &bare, interest)?.ok_or_else(ApiError::internal)?;
    if generation.copies() {
        let likely = rewriting::likely(served, &compiled.grammar, (&asked.text, &asked.costs), interest)?;
        for request in &mut samples.requests {
            request.prompt.reference.clone_from(&likely);
        }
    }
    samples.compiling += begun.elapsed();
    let reading = Arc::new(OutputFormat::of(&samples.language, samples.compiled.as_ref()));
    let base = Base::new("repair-", served, samples.enforcement.take(), &asked.ignored);
    let writer = RewriteWriter::new(base, &compiled.id, asked.text, asked.costs);
    let told = (Extras::default(), reading);
    Ok(samples.prepared(served, &generation, told, (Box::new(writer), asked.ignored)))
}
