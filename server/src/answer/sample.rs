//! One sample as it grows: takes engine events and returns news for the client. Streams send the news as they
//! come, other answers collect them.

mod token_watch;

use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_engine::{Diagnostics, Event, Finish, Grammar, Outcome, Particle, Steered, Times};

use self::token_watch::{Seen, TokenWatch};
use crate::answer::confidence::Trace;
use crate::answer::parts::{Cut, Part};
use crate::answer::text_buffer::TextBuffer;
use crate::answer::text_buffer::stops::Written;
use crate::grammars::language;
use crate::operate::metrics::FinishedSample;
use crate::wire::chat::TokenDetails;
use crate::wire::error::ApiError;
use crate::wire::generation::{LogprobsMode, Stop};
use crate::wire::response::{
    self, Budget, Confidence, ParticleText, ReasoningBudget, Sample, TokenDetail, TokenLogprob, TopLogprob,
    finite,
};

/// The reports that a request asks for besides the text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// `true` to report log-probabilities of the tokens.
    pub logprobs: bool,
    /// The distribution that the log-probabilities are taken from.
    pub mode: LogprobsMode,
    /// The details to report about each token.
    pub details: Option<TokenDetails>,
    /// `true` to report the model's confidence in each value.
    pub confidence: bool,
    /// `true` to report how likely each possible value was where the constraint left few.
    pub enum_scores: bool,
    /// `true` to report the texts that an answer was drawn from.
    pub population: bool,
}

/// The news of an event.
#[derive(Debug, Default)]
pub struct News {
    /// Text that is now certain.
    pub text: String,
    /// The tokens of that text, if the request asks for log-probabilities.
    pub logprobs: Vec<TokenLogprob>,
    /// The end, with the last event.
    pub ended: Option<Ended>,
    /// How each token of that text was chosen, if the request asks for it.
    pub tokens: Vec<TokenDetail>,
}

/// How a sample ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The reason, in the words of the API: `stop` or `length`.
    pub finish: &'static str,
    /// How the shortage of tokens affected a text that may end anywhere.
    pub cut: Cut,
    /// The law and weights of the sample.
    pub sample: Sample,
    /// How the token budget steered the sample, if it did.
    pub budget: Option<Budget>,
    /// The number of tokens of the prompt.
    pub prompt_tokens: usize,
    /// The number of those tokens that were found in the cache.
    pub cached_tokens: usize,
    /// The number of tokens written.
    pub completion_tokens: usize,
    /// The numbers of tokens drafted from the request's prediction that were written, and that were not.
    pub predictions: (usize, usize),
    /// The times that the sample took.
    pub times: Times,
}

impl Ended {
    /// Returns the figures of the sample for the metrics.
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
    /// `true` if the texts that the sample was drawn from are reported; `population` holds them.
    tells_population: bool,
    population: Option<Vec<ParticleText>>,
    /// The special tokens that are shown by their names.
    marks: Vec<u32>,
    /// The bytes that were removed from the prompt.
    healed: Vec<u8>,
    /// How many of those bytes the tokens so far have spelled.
    spelled: usize,
}

impl SampleState {
    /// Creates a sample without text.
    pub fn new(stop: &Stop, extras: Extras) -> Self {
        Self {
            buffer: TextBuffer::new(stop),
            logprobs: extras.logprobs,
            mode: extras.mode,
            pending: Vec::new(),
            tokens: 0,
            ended: false,
            watched: None,
            trace: (extras.confidence || extras.enum_scores).then(Trace::default),
            tells_population: extras.population,
            population: None,
            marks: Vec::new(),
            healed: Vec::new(),
            spelled: 0,
        }
    }

    /// Returns the model's confidence in each value of the parts of this sample, if it is reported.
    pub fn confidence(&self, parts: &[Part]) -> Option<Vec<Confidence>> {
        self.trace.as_ref().map(|trace| trace.confidence(parts))
    }

    /// Returns the tokens of this sample with their probabilities, if they are recorded.
    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Returns the texts that the sample was drawn from, if they are reported.
    pub fn population(&self) -> Option<Vec<ParticleText>> {
        self.population.clone()
    }

    /// Shows these special tokens by their names; they write nothing otherwise.
    pub fn show(&mut self, marks: &[u32]) {
        self.marks = marks.to_vec();
    }

    /// Sets the bytes removed from the prompt, which the first tokens spell and which are not reported.
    pub fn heal(&mut self, healed: &[u8]) {
        self.healed = healed.to_vec();
    }

    /// Stops the sample only where its text is a whole text of this grammar, which it obeys.
    pub fn judge_stops(&mut self, grammar: &Grammar) {
        self.buffer.judge_stops(grammar);
    }

    /// Reports how each token was chosen; with a grammar, its place in the grammar; and the drafts of its
    /// pass if the details include them.
    pub fn watch(&mut self, grammar: Option<Grammar>, details: TokenDetails) {
        self.watched = Some(TokenWatch::new(grammar, details));
    }

    /// Returns `true` if the sample has stopped, so that the engine can stop.
    pub fn wants_no_more(&self) -> bool {
        self.buffer.stopped() && !self.ended
    }

    /// Returns `true` if the sample obeys a grammar, so that it also ends without its stop.
    pub fn ends_by_itself(&self) -> bool {
        self.buffer.is_judged()
    }

    /// Returns `true` if the last event was seen.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Returns the number of tokens written so far.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Takes an event.
    ///
    /// # Errors
    /// Fails if the engine failed.
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
                // Log-probabilities that the request did not ask for are not reported.
                if let Some(logprob) = logprob.filter(|_| self.logprobs) {
                    let unspelled = &self.healed[self.spelled..];
                    let entry = entry(
                        &display_bytes(token, bytes.clone(), vocabulary),
                        self.mode.of(logprob, log_share),
                        alternatives(&top, unspelled, vocabulary),
                    );
                    self.pending.push(entry);
                }
                self.spelled += self.hidden(token, &bytes, vocabulary);
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
                    trace.push((token, written), logprob, log_mass);
                }
                let text = self.buffer.push(Written {
                    token,
                    spelled: vocabulary.bytes(token),
                    bytes: written,
                });
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
                let text = self.buffer.finish(outcome.finish == Finish::Length);
                let ended = self.end(&outcome)?;
                if self.tells_population {
                    let text = |particle| particle_text(particle, (&self.marks, &self.healed), vocabulary);
                    self.population = Some(outcome.particles.iter().map(text).collect());
                }
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

    /// Returns how many bytes of a token belong to the end of the prompt.
    fn hidden(&self, token: u32, told: &[u8], vocabulary: &Vocabulary) -> usize {
        let hidden = vocabulary.bytes(token).len().saturating_sub(told.len());
        hidden.min(self.healed.len() - self.spelled)
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
            cut: outcome
                .steered
                .map(cut)
                .filter(|_| !self.buffer.stopped())
                .unwrap_or_default(),
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
        contrast: outcome.contrast.map(|with| response::Contrast {
            beta: with.contrast.amateur,
            alpha: with.contrast.alpha,
            prompt_tokens: with.prompt_tokens,
            model: with.prompt_tokens.is_none().then_some("draft"),
        }),
        diagnostics: outcome.diagnostics.map(diagnostics),
    }
}

fn particle_text(
    particle: &Particle,
    (marks, healed): (&[u32], &[u8]),
    vocabulary: &Vocabulary,
) -> ParticleText {
    let bytes = |token: u32| match vocabulary.kind(token) {
        TokenKind::Text | TokenKind::Mark => vocabulary.bytes(token),
        TokenKind::Special | TokenKind::Unused => written(token, &[], marks, vocabulary),
    };
    let text = particle.tokens.as_ref().map(|tokens| {
        let all: Vec<u8> = tokens.iter().flat_map(|&token| bytes(token)).copied().collect();
        String::from_utf8_lossy(all.strip_prefix(healed).unwrap_or(&all)).into_owned()
    });
    ParticleText {
        text,
        log_weight: finite(particle.log_weight),
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
        Diagnostics::Search {
            width,
            score,
            rows,
            found,
            met,
        } => response::Diagnostics::Search {
            beam_width: width,
            score: finite(score),
            rows,
            found,
            met,
        },
        Diagnostics::Chain { steps, moves } => response::Diagnostics::Chain { steps, moves },
    }
}

fn cut(steered: Steered) -> Cut {
    match (steered.is_ended, steered.is_diverted) {
        (true, _) => Cut::Ended,
        (false, true) => Cut::Diverted,
        (false, false) => Cut::Nothing,
    }
}

fn budget(steered: Steered) -> Budget {
    Budget {
        steered: true,
        from_token: steered.from,
        max_tokens: steered.max_tokens,
        reasoning: steered.preamble.map(|preamble| ReasoningBudget {
            from_token: preamble.from,
            max_reasoning_tokens: preamble.max_tokens,
        }),
    }
}

/// Returns the text that a token adds to the answer: its text, or the name of a special token that marks a
/// part.
fn written<'b>(token: u32, bytes: &'b [u8], marks: &[u32], vocabulary: &'b Vocabulary) -> &'b [u8] {
    let name = vocabulary.bytes(token);
    let is_mark = || language::is_mark(name) || marks.contains(&token);
    // A text token without bytes spelled the removed end of the prompt.
    if bytes.is_empty() && vocabulary.kind(token) != TokenKind::Text && is_mark() {
        name
    } else {
        bytes
    }
}

/// Returns the bytes that show a token: special tokens write nothing, so their name is shown.
fn display_bytes(token: u32, bytes: Vec<u8>, vocabulary: &Vocabulary) -> Vec<u8> {
    if bytes.is_empty() && vocabulary.kind(token) != TokenKind::Text {
        vocabulary.bytes(token).to_vec()
    } else {
        bytes
    }
}

/// Returns likely tokens with the text that each writes after the prompt. Tokens that contradict the removed
/// end of the prompt, of which `unspelled` is left, were not possible and are left out.
fn alternatives(top: &[(u32, f32)], unspelled: &[u8], vocabulary: &Vocabulary) -> Vec<TopLogprob> {
    let likely = top.iter().filter_map(|&(token, logprob)| {
        let bytes = vocabulary.bytes(token);
        let spells = unspelled.is_empty() || vocabulary.kind(token) == TokenKind::Text;
        let told = match bytes.strip_prefix(unspelled) {
            Some(told) => told,
            None if unspelled.starts_with(bytes) => &[],
            None => return None,
        };
        spells.then(|| TopLogprob {
            token: String::from_utf8_lossy(told).into_owned(),
            logprob: finite(f64::from(logprob)),
            bytes: told.to_vec(),
        })
    });
    likely.collect()
}

fn entry(bytes: &[u8], logprob: f32, top_logprobs: Vec<TopLogprob>) -> TokenLogprob {
    TokenLogprob {
        token: String::from_utf8_lossy(bytes).into_owned(),
        logprob: finite(f64::from(logprob)),
        bytes: bytes.to_vec(),
        top_logprobs,
    }
}
