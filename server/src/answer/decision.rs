//! Decisions: how likely the model is to give each answer of a closed list, read from its own distribution.
//!
//! ```text
//!   question ─► prompt ─┐
//!   options ─► a tree ──┴─► one request, a pass or a few ─► ln P of each option ─► normalised over the list
//! ```
//!
//! The probability is that of the whole text of an option, in the tokens that the model's tokenizer makes of
//! it or in all tokenisations of it, so options may have any length and number. Nothing is sampled: the same
//! question always gets the same numbers. Where one option is a prefix of another, the probability of ending
//! there counts too.

mod methods;

use std::sync::Arc;

use lexiform_engine::{Options, OptionsError, Reporting, Request, Sampling, Weigh, Weighed};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use self::methods::TokenTrees;
use crate::answer::responses::responses_usage;
use crate::grammars::interest::Interest;
use crate::model::running::refused;
use crate::model::served::ServedModel;
use crate::model::weighing::{logs, normalised, weigh};
use crate::request::tokenization::PromptTokenizer;
use crate::request::{engine_request, permission, prompt};
use crate::wire::chat::{ChatRequest, Message};
use crate::wire::decisions::{Choice, DecisionsRequest, Kind, Method, Question, Spans, Tokenisations};
use crate::wire::error::ApiError;
use crate::wire::fields::Ignored;
use crate::wire::generation::Generation;
use crate::wire::response::{Extension, Usage, finite};

/// A question that is ready to be sent to the engine.
pub struct Questionnaire {
    question: Question,
    /// The requests that weigh the options, or their tokens.
    requests: Vec<Request>,
    /// The tokens of the options, if a method compares them.
    tokens: Option<TokenTrees>,
}

impl Questionnaire {
    /// Returns the number of its requests.
    fn count(&self) -> usize {
        self.tokens.as_ref().map_or(1, |trees| 1 + trees.unprompted.len())
    }
}

/// Prepares the questions of a request, and reports which of its fields have no effect here.
///
/// # Errors
/// Fails if the request names another model, a prompt does not fit, or options have too many tokens.
pub fn prepare(
    served: &Arc<ServedModel>,
    request: DecisionsRequest,
    interest: &Interest,
) -> Result<(Vec<Questionnaire>, Ignored), ApiError> {
    let DecisionsRequest {
        model,
        messages,
        questions,
        tokenisations,
        cache_salt,
        ignored,
    } = request;
    let plain = Generation::plain(&model);
    permission::check(&plain, interest)?;
    let mut asked = Vec::with_capacity(questions.len());
    for (number, question) in questions.into_iter().enumerate() {
        let mut chat = ChatRequest::plain(&model, messages.clone());
        chat.messages.push(Message {
            role: "user".to_owned(),
            content: Some(put(&question)),
            ..Message::default()
        });
        let cutting = PromptTokenizer::of_prompt(served, "input", interest);
        let prompt = prompt::of_chat(served, &chat, cutting)?.tokens;
        let weighing = Weighing {
            served,
            tokenisations,
            path: format!("questions[{number}]"),
        };
        let (requests, tokens) = match question.method {
            None => (vec![weighing.question(prompt, &question)?], None),
            Some(method) => {
                let (requests, trees) = weighing.tokens(prompt, &question, method)?;
                (requests, Some(trees))
            }
        };
        let sent = |request: Request| {
            let owned = request.owner(interest.owner().clone());
            owned.cache_salt(cache_salt.clone())
        };
        let requests = requests.into_iter().map(sent).collect();
        asked.push(Questionnaire {
            question,
            requests,
            tokens,
        });
    }
    Ok((asked, ignored))
}

/// Writes the question in words.
fn put(question: &Question) -> String {
    let mut text = match &question.kind {
        Kind::Predicate => format!("{}\n\nIs this true? Answer with one of:", question.instructions),
        Kind::Choice | Kind::Score => format!("{}\n\nAnswer with one of:", question.instructions),
        Kind::Extract(spans) => format!(
            "{}\n\nAnswer with words of this text, exactly as they stand in it:\n{}",
            question.instructions, spans.text
        ),
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

/// Returns `true` if no option is a prefix of another one.
fn is_prefix_free(options: &[Choice]) -> bool {
    let mut texts: Vec<&str> = options.iter().map(|option| option.text.as_str()).collect();
    // In this order a text comes right before a text that extends it, if there is one.
    texts.sort_unstable();
    !texts.windows(2).any(|pair| pair[1].starts_with(pair[0]))
}

/// The settings for weighing the options of a question.
struct Weighing<'a> {
    served: &'a ServedModel,
    tokenisations: Tokenisations,
    /// The path of the question, for errors.
    path: String,
}

impl Weighing<'_> {
    /// Returns the request that weighs the options of a question after a prompt.
    fn question(&self, prompt: Vec<u32>, question: &Question) -> Result<Request, ApiError> {
        let Kind::Extract(spans) = &question.kind else {
            let texts: Vec<&str> = question
                .options
                .iter()
                .map(|option| option.text.as_str())
                .collect();
            let weigh_end = !is_prefix_free(&question.options);
            return self.request(
                prompt,
                Arc::new(self.options(&texts, self.tokenisations)?),
                (weigh_end, None),
            );
        };
        if self.tokenisations == Tokenisations::All {
            let message =
                "spans of a text are found in canonical tokens; 'tokenisations': 'all' is for closed lists";
            let param = Some("tokenisations".to_owned());
            return Err(ApiError::invalid("invalid_value", param, message.to_owned()));
        }
        let texts: Vec<&str> = (0..spans.places.len()).map(|number| spans.read(number)).collect();
        let options = self.options(&texts, Tokenisations::Canonical)?;
        // Without the end, a span would be as likely as all spans that begin with it.
        let told = spans.told.min(texts.len());
        self.request(prompt, Arc::new(options), (true, Some(told)))
    }

    /// Returns the requests that weigh the tokens of the choices of a question, as a method compares them:
    /// after a prompt, and without one after each first token if the method asks for that.
    fn tokens(
        &self,
        prompt: Vec<u32>,
        question: &Question,
        method: Method,
    ) -> Result<(Vec<Request>, TokenTrees), ApiError> {
        let texts: Vec<&str> = question
            .options
            .iter()
            .map(|option| option.text.as_str())
            .collect();
        let trees = TokenTrees::new(method, self.sequences(&texts)?);
        let trees = trees.map_err(|error| self.invalid(error.to_string()))?;
        let prompts = std::iter::once((prompt, &trees.prompted))
            .chain(trees.unprompted.iter().map(|(&first, rest)| (vec![first], rest)));
        let requests = prompts.map(|(prompt, options)| self.request(prompt, options.clone(), (false, None)));
        Ok((requests.collect::<Result<_, _>>()?, trees))
    }

    /// Returns the tokens that the tokenizer makes of each text.
    fn sequences(&self, texts: &[&str]) -> Result<Vec<Vec<u32>>, ApiError> {
        let tokenizer = &self.served.text().tokenizer;
        let tokens = texts.iter().map(|text| tokenizer.encode(text));
        let tokens: Result<Vec<Vec<u32>>, _> = tokens.collect();
        tokens.map_err(|error| self.invalid(error.to_string()))
    }

    /// Returns the request that weighs options after a prompt, with or without their ends, and returns all of
    /// them or this many of the likeliest.
    fn request(
        &self,
        prompt: Vec<u32>,
        options: Arc<Options>,
        (weigh_end, likeliest_options): (bool, Option<usize>),
    ) -> Result<Request, ApiError> {
        let longest = options.longest() + usize::from(weigh_end);
        let max_tokens = engine_request::room(self.served, prompt.len(), Some(longest))?;
        if max_tokens < longest {
            let (prompt, context) = (prompt.len(), self.served.engine().max_context());
            let message = format!(
                "This model's maximum context length is {context} tokens, but the prompt has {prompt} tokens and the longest of its answers {longest}."
            );
            let param = Some("messages".to_owned());
            return Err(ApiError::invalid("context_length_exceeded", param, message));
        }
        let request = Request::new(prompt, max_tokens)
            .task(Weigh {
                options,
                likeliest: likeliest_options,
            })
            .sampling(Sampling::seeded(0))
            .reporting(Reporting {
                weigh_end,
                ..Reporting::default()
            });
        let checked = self.served.engine().check(&request);
        checked.map_err(|refusal| refused(&refusal))?;
        Ok(request)
    }

    fn options(&self, texts: &[&str], tokenisations: Tokenisations) -> Result<Options, ApiError> {
        let made = match tokenisations {
            Tokenisations::Canonical => Options::canonical(&self.sequences(texts)?),
            Tokenisations::All => Options::all_tokenisations(texts, self.served.vocabulary()),
        };
        made.map_err(|error| {
            let hint = match error {
                OptionsError::TooManyTokenisations { .. } => {
                    "; 'tokenisations': 'canonical' has no such limit"
                }
                _ => "",
            };
            self.invalid(format!("{error}{hint}"))
        })
    }

    fn invalid(&self, message: String) -> ApiError {
        ApiError::invalid("invalid_value", Some(self.path.clone()), message)
    }
}

/// Asks all questions and returns the whole answer with the tokens that it used.
///
/// # Errors
/// Fails if the engine cannot accept a request, or failed, or if the time of an answer is over.
pub async fn answer(
    served: &ServedModel,
    asked: Vec<Questionnaire>,
    ignored: &Ignored,
) -> Result<(String, Usage), ApiError> {
    let mut usage = Usage::default();
    let mut asked = asked;
    let requests = asked.iter_mut().flat_map(|asked| asked.requests.drain(..));
    let requests: Vec<Request> = requests.collect();
    let weighed = weigh(served, requests, Instant::now(), &mut usage).await?;
    let mut left = &weighed[..];
    let answer = |asked: &Questionnaire| {
        let (own, others) = left.split_at(asked.count().min(left.len()));
        left = others;
        match (&asked.tokens, own) {
            (Some(trees), own) => trees.answer(&asked.question, own),
            (None, [weighed, ..]) => told(&asked.question, weighed),
            (None, []) => Value::Null,
        }
    };
    let answers: Vec<Value> = asked.iter().map(answer).collect();
    usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
    let mut answer = json!({"model": served.name(), "answers": answers, "usage": responses_usage(usage)});
    if let Some(extension) = Extension::of(None, served.rounded(), &ignored.listed()) {
        answer["lexiform"] = json!(extension);
    }
    Ok((answer.to_string(), usage))
}

/// Returns the answer to a question for a span: the likeliest spans, each with the probability that the model
/// writes it and ends.
fn extracted(question: &Question, spans: &Spans, weighed: &[Weighed]) -> Value {
    let span = |weighed: &Weighed| {
        let place = spans.characters(weighed.option);
        json!({"text": spans.read(weighed.option), "start": place.start, "end": place.end,
               "probability": weighed.log_probability.exp(), "logprob": finite(weighed.log_probability)})
    };
    let told: Vec<Value> = weighed.iter().map(span).collect();
    json!({"type": "extract", "name": question.name, "text": told.first().map(|best| &best["text"]), "spans": told})
}

/// Returns the answer to a question.
fn told(question: &Question, weighed: &[Weighed]) -> Value {
    let probabilities = &normalised(&logs(weighed))[..];
    let best = (0..probabilities.len()).max_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let best = best.unwrap_or(0);
    let confidence = probabilities.get(best).copied().unwrap_or(0.0);
    let name = &question.name;
    let options = question.options.iter().zip(probabilities);
    match &question.kind {
        Kind::Extract(spans) => extracted(question, spans, weighed),
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
