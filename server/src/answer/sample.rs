//! One sample as it grows: engine events in, news for the client out. Streams send the news as they come, other
//! answers collect them.

mod token_watch;

use lexiform::vocab::Vocabulary;
use lexiform_engine::{Diagnostics, Event, Finish, Grammar, Outcome, Steered, Times};

use self::token_watch::{Seen, TokenWatch};
use crate::answer::confidence::Trace;
use crate::answer::parts::Part;
use crate::answer::text_buffer::TextBuffer;
use crate::grammars::language::MARKS;
use crate::operate::metrics::FinishedSample;
use crate::wire::chat::TokenDetails;
use crate::wire::error::ApiError;
use crate::wire::generation::LogprobsMode;
use crate::wire::response::{
    self, Budget, Confidence, Sample, TokenDetail, TokenLogprob, TopLogprob, finite,
};

/// What a request wants to be told beside the text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// Log-probabilities of the tokens.
    pub logprobs: bool,
    /// Whose law they are of.
    pub mode: LogprobsMode,
    /// What is told of each token.
    pub details: Option<TokenDetails>,
    /// How sure the model was of each value.
    pub confidence: bool,
}

/// What an event brought.
#[derive(Debug, Default)]
pub struct News {
    /// Text that is now certain.
    pub text: String,
    /// The tokens of that text, if log-probabilities were asked for.
    pub logprobs: Vec<TokenLogprob>,
    /// The end, with the last event.
    pub ended: Option<Ended>,
    /// How each token of that text came about, if that was asked for.
    pub tokens: Vec<TokenDetail>,
}

/// How a sample ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Why, in the words of the API: `stop` or `length`.
    pub finish: &'static str,
    /// Its law and weights.
    pub sample: Sample,
    /// How its tokens steered it, if they did.
    pub budget: Option<Budget>,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those found in the cache.
    pub cached_tokens: usize,
    /// Tokens written.
    pub completion_tokens: usize,
    /// Tokens that were drafted from the request's prediction and written, and those that were not written.
    pub predictions: (usize, usize),
    /// How long it took.
    pub times: Times,
}

impl Ended {
    /// What is counted of it.
    pub fn counted(&self) -> FinishedSample {
        FinishedSample {
            is_cut: self.finish == "length",
            is_steered: self.budget.is_some(),
            attempts: self.sample.attempts,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            times: self.times,
        }
    }
}

/// A sample that is being written.
#[derive(Debug)]
pub struct SampleState {
    buffer: TextBuffer,
    logprobs: bool,
    mode: LogprobsMode,
    pending: Vec<TokenLogprob>,
    tokens: usize,
    ended: bool,
    watched: Option<TokenWatch>,
    trace: Option<Trace>,
    /// Special tokens that the client is shown by their names.
    marks: Vec<u32>,
}

impl SampleState {
    /// A sample without text yet.
    pub fn new(stops: &[String], include_stop: bool, extras: Extras) -> Self {
        Self {
            buffer: TextBuffer::new(stops.to_vec(), include_stop),
            logprobs: extras.logprobs,
            mode: extras.mode,
            pending: Vec::new(),
            tokens: 0,
            ended: false,
            watched: None,
            trace: extras.confidence.then(Trace::default),
            marks: Vec::new(),
        }
    }

    /// How sure the model was of each value in the parts of this sample, if that is to be told.
    pub fn confidence(&self, parts: &[Part]) -> Option<Vec<Confidence>> {
        self.trace.as_ref().map(|trace| trace.confidence(parts))
    }

    /// Shows these special tokens by their names, which otherwise write nothing.
    pub fn show(&mut self, marks: &[u32]) {
        self.marks = marks.to_vec();
    }

    /// Tells of every token how it came about; with a grammar, where in it the token stands.
    pub fn watch(&mut self, grammar: Option<Grammar>) {
        self.watched = Some(TokenWatch::new(grammar));
    }

    /// Whether a stop string was found, so that the engine need not go on.
    pub fn wants_no_more(&self) -> bool {
        self.buffer.stopped() && !self.ended
    }

    /// Whether the last event was seen.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Tokens written so far.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Takes an event.
    ///
    /// # Errors
    /// The engine failed.
    pub fn on(&mut self, event: Event, vocabulary: &Vocabulary) -> Result<News, ApiError> {
        match event {
            Event::Token {
                token,
                bytes,
                logprob,
                top,
                log_mass,
                log_share,
                candidates,
                origin,
            } => {
                if self.buffer.stopped() {
                    return Ok(News::default());
                }
                self.tokens += 1;
                // What nobody asked for is not there, and is not shown.
                if let Some(logprob) = logprob.filter(|_| self.logprobs) {
                    let entry = entry(
                        &display_bytes(token, bytes.clone(), vocabulary),
                        self.mode.of(logprob, log_share),
                        &top,
                        vocabulary,
                    );
                    self.pending.push(entry);
                }
                let watched = self.watched.as_mut().zip(logprob).zip(candidates);
                let tokens = watched.map(|((watched, logprob), candidates)| {
                    let shown = display_bytes(token, bytes.clone(), vocabulary);
                    let seen = Seen {
                        token,
                        text: String::from_utf8_lossy(&shown).into_owned(),
                        logprob,
                        log_mass,
                        origin,
                    };
                    watched.step(seen, &candidates, vocabulary)
                });
                let written = written(token, &bytes, &self.marks, vocabulary);
                if let Some((trace, logprob)) = self.trace.as_mut().zip(logprob) {
                    trace.push(written, logprob, log_mass);
                }
                let text = self.buffer.push(written);
                let logprobs = if text.is_empty() {
                    Vec::new()
                } else {
                    std::mem::take(&mut self.pending)
                };
                Ok(News {
                    text,
                    logprobs,
                    ended: None,
                    tokens: tokens.into_iter().collect(),
                })
            }
            Event::Done(outcome) => {
                self.ended = true;
                let text = self.buffer.finish();
                let ended = self.end(&outcome)?;
                Ok(News {
                    text,
                    logprobs: std::mem::take(&mut self.pending),
                    ended: Some(ended),
                    tokens: Vec::new(),
                })
            }
            Event::Failed(error) => Err(ApiError::engine(&error)),
        }
    }

    fn end(&self, outcome: &Outcome) -> Result<Ended, ApiError> {
        let finish = match outcome.finish {
            _ if self.buffer.stopped() => "stop",
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::Cancelled => return Err(ApiError::shutting_down()),
        };
        Ok(Ended {
            finish,
            sample: sample(outcome),
            budget: outcome.steered.map(budget),
            prompt_tokens: outcome.prompt_tokens,
            cached_tokens: outcome.cached_tokens,
            completion_tokens: outcome.completion_tokens,
            predictions: (outcome.accepted_predictions, outcome.rejected_predictions),
            times: outcome.times,
        })
    }
}

fn sample(outcome: &Outcome) -> Sample {
    Sample {
        law: outcome.law.as_str(),
        log_probability: finite(outcome.log_probability),
        log_weight: outcome.log_weight.map(finite),
        attempts: outcome.attempts,
        drafted: outcome.drafted,
        accepted: outcome.accepted,
        diagnostics: outcome.diagnostics.map(diagnostics),
    }
}

fn diagnostics(of: Diagnostics) -> response::Diagnostics {
    match of {
        Diagnostics::Particles {
            particles,
            effective_size,
            resampled,
        } => response::Diagnostics::Particles {
            particles,
            effective_size: finite(effective_size),
            resampled,
        },
        Diagnostics::Beam { width, score } => response::Diagnostics::Beam {
            beam_width: width,
            score: finite(score),
        },
        Diagnostics::Chain { steps, moves } => response::Diagnostics::Chain { steps, moves },
    }
}

fn budget(steered: Steered) -> Budget {
    Budget {
        steered: true,
        from_token: steered.from,
        max_tokens: steered.max_tokens,
    }
}

/// What a token adds to the answer: its text, or the name of a special token that marks a part of an answer.
fn written<'b>(token: u32, bytes: &'b [u8], marks: &[u32], vocabulary: &'b Vocabulary) -> &'b [u8] {
    let name = vocabulary.bytes(token);
    let is_mark = || MARKS.iter().any(|mark| mark.as_bytes() == name) || marks.contains(&token);
    if bytes.is_empty() && is_mark() {
        name
    } else {
        bytes
    }
}

/// The bytes by which a token is shown: special tokens write nothing, so they are shown by their name.
fn display_bytes(token: u32, bytes: Vec<u8>, vocabulary: &Vocabulary) -> Vec<u8> {
    if bytes.is_empty() {
        vocabulary.bytes(token).to_vec()
    } else {
        bytes
    }
}

fn entry(bytes: &[u8], logprob: f32, top: &[(u32, f32)], vocabulary: &Vocabulary) -> TokenLogprob {
    let likely = |&(token, logprob): &(u32, f32)| {
        let bytes = vocabulary.bytes(token).to_vec();
        TopLogprob {
            token: String::from_utf8_lossy(&bytes).into_owned(),
            logprob: finite(f64::from(logprob)),
            bytes,
        }
    };
    TokenLogprob {
        token: String::from_utf8_lossy(bytes).into_owned(),
        logprob: finite(f64::from(logprob)),
        bytes: bytes.to_vec(),
        top_logprobs: top.iter().map(likely).collect(),
    }
}
