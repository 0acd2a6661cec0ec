//! Decisions: how likely the model is to give each answer of a closed list, read off its own distribution.
//!
//! ```text
//!   question ─► prompt ─► for each option: its tokens, forced one by one ─► sum of ln p ─► normalised over the list
//! ```
//!
//! The probability is that of the whole text of an option, in the tokens that the model's tokenizer makes of it, so
//! options may be of any length and number. Nothing is drawn: the same question always gets the same numbers. Where one
//! option is the beginning of another, the probability of ending there counts too.

use std::sync::Arc;

use lexiform_engine::{Event, Outcome, Request, Sampling, Speculation};
use serde_json::{Map, Value, json};

use crate::answer::responses::responses_usage;
use crate::grammars::interest::Interest;
use crate::grammars::language::Language;
use crate::model::running::{Running, refused};
use crate::model::served::ServedModel;
use crate::request::prompt;
use crate::request::tokenization::PromptTokenizer;
use crate::wire::chat::{ChatRequest, Message};
use crate::wire::constraint::{Constraint, Source};
use crate::wire::decisions::{Choice, DecisionsRequest, Kind, Question};
use crate::wire::error::ApiError;
use crate::wire::fields::Ignored;
use crate::wire::generation::Generation;
use crate::wire::response::Usage;

/// Options that are measured at the same time; more would fill the queue that all clients share.
const TOGETHER: usize = 16;
/// Added to the logits of an option's tokens, so that the draw takes the tokenizer's way of cutting it.
const PULL: f32 = 100.0;

/// A question that is ready to be asked.
pub struct Questionnaire {
    question: Question,
    /// Of each option, what must be measured.
    probes: Vec<Vec<Request>>,
}

/// Prepares the questions of a request, and tells which of its fields mean nothing here.
///
/// # Errors
/// The model is another one, or a prompt does not fit.
pub fn prepare(
    served: &Arc<ServedModel>,
    request: DecisionsRequest,
    interest: &Interest,
) -> Result<(Vec<Questionnaire>, Ignored), ApiError> {
    let DecisionsRequest {
        model,
        messages,
        questions,
        ignored,
    } = request;
    prompt::check_model(served, &Generation::plain(&model))?;
    let mut asked = Vec::with_capacity(questions.len());
    for question in questions {
        let mut chat = ChatRequest::plain(&model, messages.clone());
        chat.messages.push(Message {
            role: "user".to_owned(),
            content: Some(put(&question)),
            ..Message::default()
        });
        let cutting = PromptTokenizer::of_prompt(served, "input", interest);
        let prompt = prompt::of_chat(served, &chat, cutting)?.tokens;
        let ends = !is_prefix_free(&question.options);
        let probes = question
            .options
            .iter()
            .map(|option| probes(served, &prompt, option, ends, interest));
        let probes = probes.collect::<Result<_, _>>()?;
        asked.push(Questionnaire { question, probes });
    }
    Ok((asked, ignored))
}

/// The question in words.
fn put(question: &Question) -> String {
    let mut text = match question.kind {
        Kind::Predicate => format!("{}\n\nIs this true? Answer with one of:", question.instructions),
        Kind::Choice | Kind::Score => format!("{}\n\nAnswer with one of:", question.instructions),
    };
    for option in &question.options {
        text.push_str("\n- ");
        text.push_str(&option.text);
        if let Some(description) = &option.description {
            text.push_str(" (");
            text.push_str(description);
            text.push(')');
        }
    }
    text
}

fn is_prefix_free(options: &[Choice]) -> bool {
    let begins = |one: &Choice, other: &Choice| one.text != other.text && other.text.starts_with(&one.text);
    !options
        .iter()
        .any(|one| options.iter().any(|other| begins(one, other)))
}

/// The requests whose log-probabilities add up to that of an option.
fn probes(
    served: &ServedModel,
    prompt: &[u32],
    option: &Choice,
    ends: bool,
    interest: &Interest,
) -> Result<Vec<Request>, ApiError> {
    let tokenizer = &served.text().tokenizer;
    let unwritable = |error: lexiform::vocab::TokenizerError| {
        ApiError::invalid("invalid_value", Some("questions".to_owned()), error.to_string())
    };
    let tokens = tokenizer.encode(&option.text).map_err(unwritable)?;
    let mut written = probe(
        served,
        prompt.to_vec(),
        &option.text,
        tokens.len() + option.text.len(),
        interest,
    )?;
    let mut pulled = tokens.clone();
    pulled.sort_unstable();
    pulled.dedup();
    written.sampling.logit_bias = pulled.into_iter().map(|token| (token, PULL)).collect();
    written.logprobs = Some(0);
    if !ends {
        return Ok(vec![written]);
    }
    let behind = [prompt, tokens.as_slice()].concat();
    let mut end = probe(served, behind, "", 1, interest)?;
    end.weigh_end = true;
    Ok(vec![written, end])
}

fn probe(
    served: &ServedModel,
    prompt: Vec<u32>,
    text: &str,
    longest: usize,
    interest: &Interest,
) -> Result<Request, ApiError> {
    let content = Constraint::new(Source::Choice(vec![text.to_owned()]), "questions");
    let language = Language {
        content: Some(content),
        ..Language::default()
    };
    let compiled = prompt::compiled(served, &language, interest)?;
    // Behind the text, the end token.
    let max_tokens = prompt::room(served, prompt.len(), Some(longest + 1))?;
    let request = Request {
        grammar: compiled.map(|compiled| compiled.grammar),
        sampling: Sampling::default(),
        speculation: Speculation::all(),
        owner: interest.share().clone(),
        ..Request::new(prompt, max_tokens)
    };
    served
        .engine()
        .check(&request)
        .map_err(|refusal| refused(&refusal))?;
    Ok(request)
}

/// Asks all questions and gives the whole answer, and the tokens that it took.
///
/// # Errors
/// The engine cannot take a request, or failed.
pub async fn answer(
    served: &ServedModel,
    asked: Vec<Questionnaire>,
    ignored: &Ignored,
) -> Result<(String, Usage), ApiError> {
    let mut usage = Usage::default();
    let mut answers = Vec::with_capacity(asked.len());
    for Questionnaire { question, probes } in asked {
        let counts: Vec<usize> = probes.iter().map(Vec::len).collect();
        let flat: Vec<Request> = probes.into_iter().flatten().collect();
        let mut measured = Vec::with_capacity(flat.len());
        let mut rest = flat.into_iter().peekable();
        while rest.peek().is_some() {
            let together = rest.by_ref().take(TOGETHER).collect();
            measured.extend(measure(served, together, &mut usage).await?);
        }
        let mut measured = measured.into_iter();
        let logs: Vec<f64> = counts
            .iter()
            .map(|count| measured.by_ref().take(*count).sum())
            .collect();
        answers.push(told(&question, &normalised(&logs)));
    }
    usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
    let mut answer = json!({"model": served.name(), "answers": answers, "usage": responses_usage(usage)});
    if ignored.count() > 0 {
        answer["lexiform"] = json!({"ignored": ignored.listed()});
    }
    Ok((answer.to_string(), usage))
}

/// The log-probability of each request's text.
async fn measure(
    served: &ServedModel,
    requests: Vec<Request>,
    usage: &mut Usage,
) -> Result<Vec<f64>, ApiError> {
    let count = requests.len();
    let weighed: Vec<bool> = requests.iter().map(|request| request.weigh_end).collect();
    let mut running = Running::start(served.engine(), requests, served.limits().clone())?;
    let mut logs = vec![0.0; count];
    let mut left = count;
    while left > 0 {
        let (index, event) = running.next().await?;
        match event {
            Event::Token { logprob, .. } => logs[index] += logprob.map_or(0.0, f64::from),
            Event::Done(outcome) => {
                if weighed[index] {
                    logs[index] += outcome.log_probability;
                }
                count_tokens(&outcome, usage);
                left -= 1;
            }
            Event::Failed(error) => return Err(ApiError::engine(&error)),
        }
    }
    Ok(logs)
}

fn count_tokens(outcome: &Outcome, usage: &mut Usage) {
    usage.prompt_tokens += outcome.prompt_tokens;
    usage.prompt_tokens_details.cached_tokens += outcome.cached_tokens;
    usage.completion_tokens += outcome.completion_tokens;
}

/// Probabilities that add up to one.
fn normalised(logs: &[f64]) -> Vec<f64> {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !most.is_finite() {
        return vec![1.0 / logs.len().max(1) as f64; logs.len()];
    }
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// The answer to a question.
fn told(question: &Question, probabilities: &[f64]) -> Value {
    let best = (0..probabilities.len()).max_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let best = best.unwrap_or(0);
    let confidence = probabilities.get(best).copied().unwrap_or(0.0);
    let name = &question.name;
    let options = question.options.iter().zip(probabilities);
    match question.kind {
        Kind::Predicate => json!({"type": "predicate", "name": name, "probability": probabilities.first()}),
        Kind::Choice => {
            let entry = |(option, p): (&Choice, &f64)| json!({"value": option.value, "probability": p});
            json!({"type": "choice", "name": name, "choice": question.options.get(best).map(|o| &o.value),
                   "confidence": confidence, "probabilities": options.map(entry).collect::<Vec<_>>()})
        }
        Kind::Score => {
            let score: f64 = probabilities
                .iter()
                .enumerate()
                .map(|(level, p)| level as f64 * p)
                .sum();
            let entry = |(level, (option, p)): (usize, (&Choice, &f64))| {
                let mut entry = Map::new();
                entry.insert("value".to_owned(), json!(level));
                entry.insert("label".to_owned(), option.value.clone());
                entry.insert("probability".to_owned(), json!(p));
                Value::Object(entry)
            };
            json!({"type": "score", "name": name, "score": score, "confidence": confidence,
                   "probabilities": options.enumerate().map(entry).collect::<Vec<_>>()})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_to_one_however_small_they_are() {
        let shares = normalised(&[-2000.0, -2000.0 + (3.0_f64).ln()]);
        assert!((shares[0] - 0.25).abs() < 1e-9 && (shares[1] - 0.75).abs() < 1e-9);
        assert_eq!(normalised(&[f64::NEG_INFINITY; 2]), [0.5, 0.5]);
    }
}
