//! Weighs the possible values of an answer: how likely each was where the constraint left few.
//!
//! This happens after the answer has been written. Each place is a separate request to the engine, which
//! finds the keys and values of the prompt and of the answer up to there in its cache, and weighs all values
//! of the place as one tree. The probability of a value is the probability of its text, in the tokens that
//! the model's tokenizer makes of it, after the preceding part of the answer, under the model itself at
//! temperature 1, or under the one that a contrast makes of it, without its filter; the probabilities at a
//! place add up to 1.

use std::sync::Arc;

use lexiform_engine::{
    AmateurRows, Contrast, ContrastWith, Grammar, Options, Owner, Reporting, Request, Sampling, Weigh,
};
use tokio::time::Instant;

use crate::answer::confidence::Trace;
use crate::answer::confidence::closed::Closed;
use crate::answer::parts::Part;
use crate::model::served::ServedModel;
use crate::model::weighing::{logs, normalised, weigh};
use crate::wire::error::ApiError;
use crate::wire::response::{Confidence, Usage, ValueOption};

/// The beginning of a sample.
#[derive(Clone, Debug)]
struct Begun {
    prompt: Arc<Vec<u32>>,
    contrast: Option<ContrastWith>,
    grammar: Grammar,
    owner: Owner,
    cache_salt: Option<Arc<str>>,
}

/// The state for weighing the values of all samples.
#[derive(Clone, Debug, Default)]
pub struct ValueOptions {
    /// The beginning of each sample that has a constraint.
    samples: Vec<Option<Begun>>,
}

/// The values of a sample, and the places whose values are to be weighed.
#[derive(Debug, Default)]
pub struct Chosen {
    /// The values, if they are reported.
    pub fields: Option<Vec<Confidence>>,
    asked: Vec<(Closed, Request)>,
}

impl ValueOptions {
    /// Keeps the prompts and grammars of these requests, which are the requests of the samples.
    pub fn keep(&mut self, requests: &[Request]) {
        for request in requests {
            let begun = request.constraints.grammar.clone().map(|grammar| Begun {
                prompt: Arc::new(request.prompt.tokens.clone()),
                contrast: request.sampling.contrast.clone(),
                grammar,
                owner: request.limits.owner.clone(),
                cache_salt: request.prompt.cache_salt.clone(),
            });
            self.samples
                .extend(std::iter::repeat_n(begun, request.task.answers()));
        }
    }

    /// Finds the places of a sample where the constraint left few values. Without a constraint there are
    /// none.
    pub fn find(&self, served: &ServedModel, sample: usize, (trace, parts): (&Trace, &[Part])) -> Chosen {
        let Some(begun) = self.samples.get(sample).and_then(Option::as_ref) else {
            return Chosen {
                fields: Some(trace.confidence(parts)),
                asked: Vec::new(),
            };
        };
        let (fields, closed) = trace.with_closed(parts, &begun.grammar);
        let asked = closed.into_iter().filter_map(|closed| {
            let request = begun.request(served, trace, &closed)?;
            Some((closed, request))
        });
        Chosen {
            asked: asked.collect(),
            fields: Some(fields),
        }
    }
}

impl Begun {
    /// Returns the request that weighs the values of a place; `None` if they do not fit into the model's
    /// context or are too many.
    fn request(&self, served: &ServedModel, trace: &Trace, closed: &Closed) -> Option<Request> {
        let tokenizer = &served.text().tokenizer;
        let texts = closed.texts.iter().map(|(text, _)| tokenizer.encode(text).ok());
        let options = Options::canonical(&texts.collect::<Option<Vec<_>>>()?).ok()?;
        let max_tokens = options.longest() + usize::from(closed.with_end);
        let before = trace.tokens(closed.before);
        let prompt = [&self.prompt[..], &before].concat();
        let contrast = self.contrast.as_ref().map(|with| ContrastWith {
            amateur: match &with.amateur {
                AmateurRows::Prompt(tokens) => AmateurRows::Prompt([&tokens[..], &before].concat()),
                AmateurRows::DraftModel => AmateurRows::DraftModel,
            },
            contrast: Contrast {
                alpha: 0.0,
                ..with.contrast
            },
        });
        let request = Request::new(prompt, max_tokens)
            .task(Weigh {
                options: Arc::new(options),
                likeliest: None,
            })
            .sampling(Sampling {
                contrast,
                ..Sampling::seeded(0)
            })
            .owner(self.owner.clone())
            .cache_salt(self.cache_salt.clone())
            .reporting(Reporting {
                weigh_end: closed.with_end,
                ..Reporting::default()
            });
        served.engine().check(&request).ok()?;
        Some(request)
    }
}

impl Chosen {
    /// Weighs the values of all places and adds the tokens used to `usage`. The time for that began at this
    /// moment.
    ///
    /// # Errors
    /// Fails if the engine cannot accept a request, or failed, or if the time is over.
    pub async fn weigh(
        &mut self,
        served: &ServedModel,
        begun: Instant,
        usage: &mut Usage,
    ) -> Result<(), ApiError> {
        let (closed, requests): (Vec<Closed>, Vec<Request>) = self.asked.drain(..).unzip();
        let mut own = Usage::default();
        let weighed = weigh(served, requests, begun, &mut own).await?;
        usage.completion_tokens += own.completion_tokens;
        let Some(fields) = &mut self.fields else {
            return Ok(());
        };
        for (closed, weighed) in closed.into_iter().zip(weighed) {
            let field = closed.field;
            fields[field].options = Some(options(closed, &logs(&weighed)));
        }
        Ok(())
    }
}

/// Returns the values of a place with their probabilities, the likeliest first.
fn options(closed: Closed, logs: &[f64]) -> Vec<ValueOption> {
    let mut options: Vec<ValueOption> = closed
        .values
        .into_iter()
        .map(|value| ValueOption {
            value,
            probability: 0.0,
        })
        .collect();
    for ((_, number), probability) in closed.texts.iter().zip(normalised(logs)) {
        options[*number].probability += probability;
    }
    options.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    options
}
