//! From a checked request to the input of the engine: tokens, a compiled grammar, sampling.
//!
//! All of this is CPU-bound work (parsing, compiling, rendering, tokenizing), so it runs on a thread that may
//! block, never on one that serves connections.

use std::time::Duration;

use lexiform::error::{Place, Problem, ProblemKind};
use lexiform::limits::Limits;
use lexiform::vocab::TokenKind;
use lexiform_engine::{
    Constraints, ContrastWith, Draw, Grammar, LogprobsOf, OnBudget, PenaltyScope, Reporting, Request,
    Sampling, Search, Speculation, Task, Verification,
};

use crate::grammars::enforcement;
use crate::grammars::interest::Interest;
use crate::grammars::language::{END_THINK, Language, THINK, Thought};
use crate::grammars::store::Compiled;
use crate::grammars::tool_format::ToolFormat;
use crate::model::served::ServedModel;
use crate::model::template::{ChatTemplate, Conversation, Piece, TemplateError};
use crate::model::text::Defaults;
use crate::request::tokenization::{PromptTokenizer, TextKind};
use crate::request::{permission, told};
use crate::wire::chat::ChatRequest;
use crate::wire::completion::Prompt;
use crate::wire::constraint::Constraint;
use crate::wire::error::ApiError;
use crate::wire::fields::Ignored;
use crate::wire::generation::{self as wire, Generation, LogprobsMode};
use crate::wire::tools::{Callable, Calls, Input, Mode};

/// The maximum time that the monitors of a request may take for the tokens of a pass. They are grammars,
/// whose steps are counted.
const MONITOR_TIME: Duration = Duration::from_secs(5);

/// The distance between the random streams of the prompts of one request, if an answer needs more texts than
/// it returns.
const STREAMS: usize = 1 << 16;

/// A conversation as the model reads it, and the language of the answer.
pub struct Chat {
    /// The tokens of the conversation.
    pub tokens: Vec<u32>,
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
        thought: Thought::None,
        content: request.generation.constraint.clone(),
        calls,
        tool_format: tool_format.unwrap_or_default(),
        prefix: Vec::new(),
    };
    let told = told::of(template, request, &language);
    let messages = told.within(&request.messages);
    let conversation = Conversation {
        messages: &messages,
        tools: told.tools,
        schema: told.schema.as_deref(),
        arguments: &request.template_arguments,
    };
    let pieces = template.render(&conversation).map_err(|error| refused(&error))?;
    language.thought = thought(served, &pieces);
    for piece in &pieces {
        match piece {
            Piece::Template(text) => cutting.text(text, TextKind::Template)?,
            Piece::Plain(text) => cutting.text(text, TextKind::Exact)?,
        }
    }
    let tokens = cutting.tokens();
    Ok(Chat { tokens, language })
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
/// schemas, a required call is instead an answer under the tool's schema. The formats of models have no place
/// for the input of custom tools.
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

/// Determines whether the answer begins with a thought: the prompt may have opened one, or opened and closed
/// it.
fn thought(served: &ServedModel, pieces: &[Piece]) -> Thought {
    if !served.thinks() {
        return Thought::None;
    }
    let Some(Piece::Template(last)) = pieces.last() else {
        return Thought::Possible;
    };
    let end = last.trim_end();
    if end.ends_with(THINK) {
        Thought::Begun
    } else if end.ends_with(END_THINK) {
        Thought::None
    } else {
        Thought::Possible
    }
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

/// Lets these requests obey the grammar of free text if they have to go on after its end: without masks a
/// model may end a text anywhere. They are cut after `max_tokens`, as free text is.
///
/// # Errors
/// Fails if the interest was lost.
pub fn keep_going(
    served: &ServedModel,
    language: &Language,
    requests: &mut [Request],
    interest: &Interest,
) -> Result<(), ApiError> {
    let needs = |request: &Request| request.limits.min_tokens > 0 && request.constraints.grammar.is_none();
    if !language.is_free() || !requests.iter().any(needs) {
        return Ok(());
    }
    let compiled = grammar(served, language, interest)?;
    for request in requests.iter_mut().filter(|request| needs(request)) {
        request.constraints.grammar = Some(compiled.grammar.clone());
        if request.limits.on_budget == OnBudget::Complete {
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

/// Returns one engine request for each prompt, of `n` samples.
///
/// # Errors
/// Fails if a prompt leaves no room for an answer, or if a field names tokens that do not exist.
pub fn engine_requests(
    served: &ServedModel,
    generation: &Generation,
    (prompts, contrast): (Vec<Vec<u32>>, Option<&ContrastWith>),
    grammar: Option<&Grammar>,
    logprobs: Option<u8>,
) -> Result<Vec<Request>, ApiError> {
    check_tokens(served, generation)?;
    if generation.task.ranks() && logprobs.is_some_and(|top| top > 0) {
        let message = "top_logprobs: a search reports the log-probability of its tokens, and not of others.";
        let param = Some("top_logprobs".to_owned());
        return Err(ApiError::invalid("invalid_value", param, message.to_owned()));
    }
    let task = task(served, generation)?;
    let seed = generation.seed.unwrap_or_else(crate::operate::random::seed);
    let streams = match &task {
        Task::Draw(draw) if !draw.law.chooses() => draw.best_of.unwrap_or(draw.answers),
        Task::Draw(_) | Task::Search { .. } | Task::Weigh(_) => STREAMS,
    };
    let logprobs = logprobs.or((generation.confidence || generation.enum_scores).then_some(0));
    let reporting = Reporting {
        logprobs,
        logprobs_of: match generation.logprobs_mode {
            LogprobsMode::Raw => LogprobsOf::Model,
            LogprobsMode::Processed => LogprobsOf::Allowed,
        },
        candidates: None,
        weigh_end: generation.weights,
    };
    let mut requests = Vec::with_capacity(prompts.len());
    for (number, prompt) in prompts.into_iter().enumerate() {
        let max_tokens = room_of_two(served, (&prompt, contrast), generation.max_tokens)?;
        let stream = u32::try_from(number * streams).unwrap_or(u32::MAX);
        // The owner and the deadline are set when the request is submitted, and the monitors are compiled
        // where the language is known.
        requests.push(Request {
            constraints: Constraints {
                grammar: grammar.cloned(),
                monitor_time: MONITOR_TIME,
                stop_tokens: generation.stop_tokens.clone(),
                ignore_eos: generation.ignore_eos,
                ..Constraints::default()
            },
            task: task.clone(),
            sampling: Sampling {
                contrast: contrast.cloned(),
                ..sampling(served, generation, (seed, stream))
            },
            speculation: speculation(generation),
            reporting,
            batch_invariant: generation.batch_invariant,
            ..Request::new(prompt, max_tokens)
                // In vLLM, a lower priority is more urgent.
                .priority(generation.priority.saturating_neg())
                .cache_salt(generation.cache_salt.clone())
                .min_tokens(match generation.ignore_eos {
                    // Nothing ends the answer early in any case.
                    true => 0,
                    false => generation.min_tokens,
                })
                .on_budget(match generation.on_budget {
                    wire::OnBudget::Complete => OnBudget::Complete,
                    wire::OnBudget::Truncate => OnBudget::Cut,
                    wire::OnBudget::Error => OnBudget::Fail,
                })
        });
    }
    Ok(requests)
}

/// Returns the task of a request, with the phrases of a search as tokens.
fn task(served: &ServedModel, generation: &Generation) -> Result<Task, ApiError> {
    let asked = match &generation.task {
        wire::Task::Draw(law) => {
            return Ok(Task::Draw(Draw {
                law: *law,
                answers: generation.samples(),
                best_of: generation.candidates(),
            }));
        }
        wire::Task::Search(asked) => asked,
    };
    let mut search = asked.search.clone();
    let tokens = |phrase: &String, field: &str| phrase_tokens(served, phrase, field);
    match &mut search {
        Search::DynamicBeam { must_contain, .. } => {
            for phrase in asked.must_contain.iter().flatten() {
                must_contain.push(tokens(phrase, "search.must_contain")?);
            }
        }
        Search::AStarEsque {
            must_contain,
            must_not_contain,
            ..
        } => {
            for clause in &asked.must_contain {
                let phrases = clause.iter().map(|phrase| tokens(phrase, "search.must_contain"));
                must_contain.push(phrases.collect::<Result<_, _>>()?);
            }
            for phrase in &asked.must_not_contain {
                must_not_contain.push(tokens(phrase, "search.must_not_contain")?);
            }
        }
        _ => {}
    }
    Ok(Task::Search {
        search,
        answers: generation.n,
    })
}

/// Returns tokens that write a phrase and nothing else: the tokens of the tokenizer, or if it adds a space,
/// the longest that fit, one after another.
fn phrase_tokens(served: &ServedModel, phrase: &str, field: &str) -> Result<Vec<u32>, ApiError> {
    let vocabulary = served.vocabulary();
    let written = |tokens: &[u32]| -> Vec<u8> {
        let bytes = tokens.iter().flat_map(|&token| vocabulary.bytes(token));
        bytes.copied().collect()
    };
    let encoded = served.text().tokenizer.encode_plain(phrase).unwrap_or_default();
    if written(&encoded) == phrase.as_bytes() {
        return Ok(encoded);
    }
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < phrase.len() {
        let Some((length, all)) = vocabulary.trie().prefixes(&phrase.as_bytes()[at..]).last() else {
            let message = format!("{field}: the vocabulary cannot write {phrase:?}.");
            let param = Some(field.to_owned());
            return Err(ApiError::invalid("invalid_value", param, message));
        };
        tokens.push(all[0]);
        at += length;
    }
    Ok(tokens)
}

/// Records the fields that have no effect with the model that is served: a model that is greedy unless a
/// request says otherwise has no weights, and one without a draft model none of its tokens.
pub fn note_ineffective(served: &ServedModel, generation: &Generation, ignored: &mut Ignored) {
    let temperature = recommended(served, generation).temperature;
    let is_own = generation.temperature.is_none() && generation.weights;
    if is_own && generation.has_weights_at(1.0) && !generation.has_weights_at(temperature) {
        ignored.add("weights");
    }
    if !served.has_draft_model() {
        let drafts = &generation.draft;
        let wishes = [
            ("draft.candidates", drafts.allowed.candidates > 1),
            // Drawing once also orders how samples learn from each other.
            (
                "draft.rule",
                drafts.rule.is_some_and(|rule| rule != Verification::DrawOnce) && !drafts.allowed.sampled,
            ),
        ];
        for (path, _) in wishes.into_iter().filter(|(_, is_wished)| *is_wished) {
            ignored.add(path);
        }
    }
}

/// Returns the drafting settings.
fn speculation(generation: &Generation) -> Speculation {
    let allowed = match generation.drafts() {
        true => generation.draft.allowed,
        false => Speculation::none(),
    };
    Speculation {
        // Without drafts, too: answers of a seed learn from each other in a fixed order.
        verification: match (generation.seed, generation.draft.rule) {
            (None, rule) if !generation.batch_invariant => rule.unwrap_or(Verification::Residual),
            _ => Verification::DrawOnce,
        },
        ..allowed
    }
}

/// Returns the maximum number of tokens of an answer. `max_tokens` is an upper bound, so a value larger than
/// the room is reduced to it.
pub(crate) fn room(served: &ServedModel, prompt: usize, wanted: Option<usize>) -> Result<usize, ApiError> {
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

/// Returns the maximum number of tokens of an answer after a prompt, and after another one that it is
/// contrasted with: each must fit the context, and both the cache. A draft model that it is contrasted with
/// has a context of its own.
fn room_of_two(
    served: &ServedModel,
    (prompt, contrast): (&[u32], Option<&ContrastWith>),
    wanted: Option<usize>,
) -> Result<usize, ApiError> {
    let Some(with) = contrast else {
        return room(served, prompt.len(), wanted);
    };
    let Some(tokens) = with.prompt() else {
        let read = served.engine().draft_context().unwrap_or(usize::MAX);
        // Where nothing is left, the engine says why.
        let left = read.saturating_sub(prompt.len()).max(1);
        return Ok(room(served, prompt.len(), wanted)?.min(left));
    };
    let other = room(served, tokens.len(), wanted).map_err(|error| error.about("contrast"))?;
    let positions = served.engine().cache_positions();
    let both = positions.saturating_sub(prompt.len() + tokens.len()) / 2;
    if both == 0 {
        let message = format!(
            "The prompt and the one that it is contrasted with have {} and {} tokens; the cache has {positions}.",
            prompt.len(),
            tokens.len()
        );
        let param = Some("contrast".to_owned());
        return Err(ApiError::invalid("context_length_exceeded", param, message));
    }
    Ok(room(served, prompt.len(), wanted)?.min(other).min(both))
}

fn check_tokens(served: &ServedModel, generation: &Generation) -> Result<(), ApiError> {
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

/// Returns the settings that the model recommends for a request. They are for sampling token by token; a
/// search that ranks does not sample, and the laws about the model are about the model as it is.
fn recommended(served: &ServedModel, generation: &Generation) -> Defaults {
    let defaults = served.text().defaults;
    match &generation.task {
        wire::Task::Search(search) if !search.draws() => Defaults::default(),
        wire::Task::Draw(law) if !law.is_local() => defaults.of_model(),
        wire::Task::Draw(_) | wire::Task::Search(_) => defaults,
    }
}

fn sampling(served: &ServedModel, generation: &Generation, (seed, stream): (u64, u32)) -> Sampling {
    let is_ranked = generation.task.ranks();
    let defaults = recommended(served, generation);
    let temperature = generation.temperature.unwrap_or(defaults.temperature);
    let filters = generation.filters;
    Sampling {
        temperature: if is_ranked { 1.0 } else { temperature },
        // The API allows zero, which means the smallest nucleus: a single token.
        top_p: generation.top_p.unwrap_or(defaults.top_p).max(f32::MIN_POSITIVE),
        top_k: generation.top_k.map_or(defaults.top_k, |k| (k > 0).then_some(k)),
        min_p: generation.min_p.unwrap_or(defaults.min_p),
        // Zero means the smallest set, as for `top_p`.
        typical_p: filters
            .typical_p
            .unwrap_or(defaults.typical_p)
            .max(f32::MIN_POSITIVE),
        top_n_sigma: filters.top_n_sigma,
        epsilon_cutoff: filters.epsilon_cutoff.unwrap_or(defaults.epsilon_cutoff),
        eta_cutoff: filters.eta_cutoff.unwrap_or(defaults.eta_cutoff),
        bregman_lambda: filters.bregman_lambda.unwrap_or(0.0),
        mirostat: filters.mirostat,
        seed,
        stream,
        repetition_penalty: generation
            .repetition_penalty
            .unwrap_or(defaults.repetition_penalty),
        presence_penalty: generation.presence_penalty,
        frequency_penalty: generation.frequency_penalty,
        // The language of the answer decides.
        penalty_scope: PenaltyScope::All,
        logit_bias: generation.logit_bias.clone(),
        contrast: None,
    }
}
