//! The builder of an answer: collects the samples as they grow and passes their parts to the writer of a
//! route.
//!
//! ```text
//!   (sample, event) ─► SampleState ─► text ─► PartReader ─► parts ─► Writer ─► bytes
//!                                                                ├ chat        chat.completion[.chunk]
//!                                                                ├ text        text_completion
//!                                                                ├ responses   response, response.*
//!                                                                └ rewriting   repair
//! ```

mod agreement;
mod choice;
mod choosing;
pub mod grown;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lexiform_engine::{Event, Grammar, PreambleTokens, Request, Times};
use lexiform_syntax::answer::AnswerReader;

use serde_json::Value;

use crate::answer::builder::choice::{Choice, Place};
use crate::answer::certificate::Certifier;
use crate::answer::confidence::value_options::{Chosen, ValueOptions};
use crate::answer::parts::{OutputFormat, Part, without_places};
use crate::answer::sample::{Ended, Extras, SampleState};
use crate::answer::writer::{End, Findings, PendingTokens, Piece, Whole, Writer, opened};
use crate::model::running::Running;
use crate::model::served::ServedModel;
use crate::operate::audit::{ANSWERED, Account, PHASE};
use crate::operate::metrics::{self, Phase};
use crate::wire::chat::TokenDetails;
use crate::wire::error::ApiError;
use crate::wire::generation::Generation;
use crate::wire::response::Usage;

struct Growing {
    /// `true` if its first frames are written.
    begun: bool,
    /// `true` if the search of the request found no text for it, and found others.
    absent: bool,
    sample: SampleState,
    reader: AnswerReader,
    since: PendingTokens,
    /// The count of the tokens of the thought, if there may be one.
    thought: Option<PreambleTokens>,
    ended: Option<Ended>,
    place: Place,
    /// The parts so far, if they are to be checked at the end.
    parts: Vec<Part>,
}

impl Growing {
    /// Returns `true` if it is one of the choices of the answer.
    fn is_told(&self) -> bool {
        matches!(self.place, Place::Told(..))
    }
}

/// The builder of one answer: takes the events of its samples and returns JSON or the frames of a stream.
pub struct AnswerBuilder {
    served: Arc<ServedModel>,
    writer: Box<dyn Writer>,
    reading: Arc<OutputFormat>,
    samples: Vec<Growing>,
    /// The number of samples for each prompt, which are adjacent; each prompt is counted once.
    per_prompt: usize,
    /// `true` if a search ranks texts, and may find fewer than there are samples.
    ranks: bool,
    /// How the answers are chosen among the samples, until they are.
    choice: Option<Choice>,
    /// `true` if the answers are chosen among more samples.
    chooses: bool,
    account: Option<Account>,
    certifier: Option<Certifier>,
    confidence: bool,
    /// The state for weighing the possible values of the answer, if the request asks for it.
    value_options: Option<ValueOptions>,
    /// The tokens used for weighing.
    weighed: Usage,
    begun: Instant,
    /// When the last sample ended.
    last_ended: Instant,
    silent: bool,
    max_tokens: Option<usize>,
    /// `true` once the request has been answered to its end, successfully or not.
    settled: bool,
    /// The time that the server itself has spent on this answer, without the model, masks and compilations.
    spent: Duration,
}

impl AnswerBuilder {
    /// Creates the builder of an answer with this many samples.
    pub fn new(
        served: Arc<ServedModel>,
        writer: Box<dyn Writer>,
        reading: Arc<OutputFormat>,
        generation: &Generation,
        count: usize,
        extras: Extras,
    ) -> Self {
        let per_prompt = generation.samples();
        let choice = Choice::of(generation);
        // All answers to a prompt are drawn from the same texts, which are reported once.
        let extras_of = |index: usize| Extras {
            population: generation.return_particles && index.is_multiple_of(per_prompt),
            ..extras
        };
        let growing = |index| Growing {
            begun: false,
            absent: false,
            sample: SampleState::new(&generation.stop, extras_of(index)),
            reader: reading.reader(),
            since: PendingTokens::default(),
            thought: reading.preamble().map(PreambleTokens::new),
            ended: None,
            place: Choice::place(choice.as_ref(), index),
            parts: Vec::new(),
        };
        Self {
            served,
            writer,
            samples: (0..count).map(growing).collect(),
            reading,
            per_prompt,
            ranks: generation.task.ranks(),
            chooses: choice.is_some(),
            choice,
            account: None,
            certifier: None,
            confidence: extras.confidence,
            value_options: extras.enum_scores.then(ValueOptions::default),
            weighed: Usage::default(),
            begun: Instant::now(),
            last_ended: Instant::now(),
            silent: true,
            max_tokens: generation.max_tokens,
            settled: false,
            spent: Duration::ZERO,
        }
    }

    /// Adds to the time that the server itself has spent on this answer.
    pub fn spent(&mut self, time: Duration) {
        self.spent += time;
    }

    /// Charges the cost of this answer to an account.
    pub fn charge(&mut self, account: Account) {
        self.account = Some(account);
    }

    /// Reports how each token was chosen and, with a grammar, its place in the grammar.
    pub fn watch(&mut self, grammar: Option<&Grammar>, details: TokenDetails) {
        for growing in &mut self.samples {
            growing.sample.watch(grammar.cloned(), details);
        }
    }

    /// Shows these special tokens by their names.
    pub fn show(&mut self, marks: &[u32]) {
        for growing in &mut self.samples {
            growing.sample.show(marks);
        }
    }

    /// Hides the text that was removed from the prompts of these requests, which are the requests of the
    /// samples.
    pub fn heal(&mut self, requests: &[Request]) {
        let samples = requests
            .iter()
            .flat_map(|request| std::iter::repeat_n(&request.prompt.healed, request.task.answers()));
        for (growing, healed) in self.samples.iter_mut().zip(samples) {
            growing.sample.heal(healed);
        }
    }

    /// Stops samples only where their texts are whole under the grammars of these requests, which are the
    /// requests of the samples.
    pub fn judge_stops(&mut self, requests: &[Request]) {
        let samples = requests.iter().flat_map(|request| {
            std::iter::repeat_n(request.constraints.grammar.as_ref(), request.task.answers())
        });
        for (growing, grammar) in self.samples.iter_mut().zip(samples) {
            if let Some(grammar) = grammar {
                growing.sample.judge_stops(grammar);
            }
        }
    }

    /// Keeps the prompts and grammars needed to weigh possible values, if the request asks for it.
    pub fn keep(&mut self, requests: &[Request]) {
        if let Some(options) = &mut self.value_options {
            options.keep(requests);
        }
    }

    /// Returns `true` if values are weighed after the answer has been written.
    pub fn weighs(&self) -> bool {
        self.value_options.is_some()
    }

    /// Returns `true` if writing the whole answer takes too long for a thread that serves connections.
    pub fn is_slow_to_write(&self) -> bool {
        self.writer.is_slow()
    }

    /// Checks every answer again before it ends.
    pub fn certify(&mut self, certifier: Option<Certifier>) {
        self.certifier = certifier;
    }

    /// Returns the certificates of the parts of a sample.
    fn certificates(&self, parts: &[Part]) -> Result<Vec<Value>, ApiError> {
        let Some(certifier) = &self.certifier else {
            return Ok(Vec::new());
        };
        let mut certificates = Vec::new();
        for checked in certifier.all(parts) {
            if !checked.valid {
                self.served.metrics().invalid_output();
                return Err(ApiError::refuted());
            }
            certificates.push(checked.certificate);
        }
        Ok(certificates)
    }

    /// Returns the findings about a sample that has ended.
    fn findings(&self, growing: &Growing, ended: &Ended, parts: &[Part]) -> Result<Findings, ApiError> {
        if ended.finish != "stop" {
            return Ok(Findings::default());
        }
        Ok(Findings {
            certificates: self.certificates(parts)?,
            fields: self
                .confidence
                .then(|| growing.sample.confidence(parts))
                .flatten(),
            population: growing.sample.population(),
            ..Findings::default()
        })
    }

    /// Closes the account with this verdict and records the metrics of the request.
    fn settle(&mut self, verdict: &'static str) {
        self.settled = true;
        if verdict == ANSWERED {
            let lengths = self.samples.iter().filter_map(|growing| growing.ended);
            self.served.metrics().asked(metrics::RequestSize {
                samples: self.per_prompt,
                max_tokens: self.max_tokens,
                longest: lengths.map(|ended| ended.completion_tokens).max().unwrap_or(0),
            });
        }
        self.served.metrics().whole(self.begun.elapsed());
        self.served.metrics().own_time_of_request(self.spent);
        let usage = self.usage();
        let finishes = self.samples.iter().filter_map(|growing| growing.ended);
        let finishes: Vec<&str> = finishes.map(|ended| ended.finish).collect();
        if let Some(account) = &mut self.account {
            account.note("finish", finishes);
            account.spent("finish", None, (self.last_ended, Instant::now()));
            account.end(verdict, usage);
        }
    }

    async fn grow(&mut self, running: &mut Running) -> Result<Vec<Vec<Part>>, ApiError> {
        let mut parts: Vec<Vec<Part>> = self.samples.iter().map(|_| Vec::new()).collect();
        while !self.complete() {
            let (index, event) = running.next().await?;
            let read = self.take(index, event, running)?;
            parts[index].extend(read);
        }
        self.choose(&parts)?;
        Ok(parts)
    }

    fn whole(&mut self, parts: Vec<Vec<Part>>, chosen: Vec<Chosen>) -> Result<String, ApiError> {
        let begun = Instant::now();
        let mut found = self.found(&parts)?;
        for (findings, chosen) in found.iter_mut().zip(chosen) {
            findings.fields = chosen.fields.or(findings.fields.take());
        }
        let usage = self.usage();
        let reading = self.reading.clone();
        let samples = self.samples.iter_mut().zip(parts).zip(found);
        let whole = samples.filter_map(|((growing, parts), findings)| {
            let Place::Told(place, support) = &mut growing.place else {
                return None;
            };
            let mut whole = whole(*place, &reading, parts, growing.ended?);
            whole.logprobs = std::mem::take(&mut growing.since.logprobs);
            whole.findings = Findings {
                support: support.take(),
                ..findings
            };
            Some(whole)
        });
        let mut whole: Vec<Whole> = whole.collect();
        whole.sort_by_key(|whole| whole.index);
        let json = self.writer.whole(whole, usage);
        self.spent += begun.elapsed();
        self.settle(ANSWERED);
        Ok(json)
    }

    /// Returns the findings about all samples.
    fn found(&self, parts: &[Vec<Part>]) -> Result<Vec<Findings>, ApiError> {
        let samples = self.samples.iter().zip(parts);
        let found = samples.map(|(growing, parts)| match &growing.ended {
            Some(ended) if growing.is_told() => self.findings(growing, ended, parts),
            _ => Ok(Findings::default()),
        });
        found.collect()
    }

    /// Returns `true` if every sample has ended, or is known to be absent.
    pub fn complete(&self) -> bool {
        let is_over =
            |growing: &Growing| growing.ended.is_some() || growing.absent || growing.place == Place::LeftOut;
        self.samples.iter().all(is_over)
    }

    /// Passes an event to its sample, cancels a sample that reached its stop string, and reads the text.
    fn take(&mut self, index: usize, event: Event, running: &mut Running) -> Result<Vec<Part>, ApiError> {
        if std::mem::take(&mut self.silent) {
            self.served.metrics().first_token(self.begun.elapsed());
        }
        let Some(event) = self.unless_failed(index, event) else {
            return Ok(Vec::new());
        };
        let growing = self.samples.get_mut(index).ok_or_else(ApiError::internal)?;
        if let Event::Token { origin, token, .. } = &event {
            self.served.metrics().token(*origin);
            if let Some(thought) = &mut growing.thought {
                thought.read(self.served.vocabulary().bytes(*token));
            }
        }
        if let Event::Failed(error) = &event
            && error.found_others()
        {
            growing.absent = true;
            return Ok(Vec::new());
        }
        let news = growing.sample.on(event, self.served.vocabulary())?;
        // The likelihood of a cancelled sample depends on when it was cancelled, and samples are compared by
        // it.
        let is_compared = self.chooses && growing.sample.ends_by_itself();
        if growing.sample.wants_no_more() && !is_compared {
            running.cancel(index);
        }
        let mut parts: Vec<Part> = without_places(growing.reader.push(&news.text)).collect();
        growing.since.logprobs.extend(news.logprobs);
        growing.since.tokens.extend(news.tokens);
        if let Some(mut ended) = news.ended {
            parts.extend(without_places(growing.reader.finish()));
            if ended.finish == "stop" && self.reading.is_cut(growing.reader.place(), ended.cut) {
                ended.finish = "length";
            }
            growing.ended = Some(ended);
            self.served.metrics().finished(ended.counted());
            self.ended(index, ended.times);
            self.note_ended(index, ended.finish, running);
        }
        Ok(parts)
    }

    /// Records the times of a sample when it ends.
    fn ended(&mut self, index: usize, times: Times) {
        let end = Instant::now();
        self.last_ended = end;
        let before = |at: Instant, time| at.checked_sub(time).unwrap_or(at);
        let first = before(end, times.decode);
        let admitted = before(first, times.prefill);
        if let Some(account) = &mut self.account {
            account.spent("queue", Some(index), (before(admitted, times.queued), admitted));
            account.spent("prefill", Some(index), (admitted, first));
            account.spent("decode", Some(index), (first, end));
        }
    }

    /// Writes the first frames of a stream.
    pub fn opening(&mut self, out: &mut String) {
        let begun = Instant::now();
        self.writer.opening(self.samples.len(), out);
        if !self.ranks {
            (0..self.samples.len()).for_each(|index| self.begin(index, out));
        }
        self.spent += begun.elapsed();
    }

    /// Writes the first frames of a sample, unless they are written. Those of a search that ranks are written
    /// with its texts: before, nobody knows how many there are.
    fn begin(&mut self, index: usize, out: &mut String) {
        if let Some(growing) = self.samples.get_mut(index)
            && !std::mem::replace(&mut growing.begun, true)
        {
            self.writer.begin(index, out);
        }
    }

    /// Writes the frames of an event.
    ///
    /// # Errors
    /// Fails if the engine failed.
    pub fn event(
        &mut self,
        index: usize,
        event: Event,
        running: &mut Running,
        out: &mut String,
    ) -> Result<(), ApiError> {
        let begun = Instant::now();
        let is_token = matches!(event, Event::Token { .. });
        let told = self.tell(index, event, running, out);
        let time = begun.elapsed();
        if is_token {
            self.served.metrics().own_time_of_token(time);
        } else {
            self.spent += time;
        }
        told
    }

    fn tell(
        &mut self,
        index: usize,
        event: Event,
        running: &mut Running,
        out: &mut String,
    ) -> Result<(), ApiError> {
        let parts = self.take(index, event, running)?;
        if self.samples.get(index).is_some_and(|growing| growing.absent) {
            return Ok(());
        }
        self.begin(index, out);
        let usage = self.usage();
        let keeps_parts = self.certifier.is_some() || self.confidence;
        let growing = self.samples.get_mut(index).ok_or_else(ApiError::internal)?;
        if keeps_parts {
            growing.parts.extend(parts.iter().cloned());
        }
        for part in parts {
            // The end of a call produces no output, so the report on its tokens waits for the next part that
            // does.
            let shows = part != Part::Closed;
            let piece = Piece {
                index,
                part,
                since: taken(shows, &mut growing.since),
                usage,
            };
            self.writer.piece(piece, out);
        }
        if let Some(ended) = growing.ended {
            let since = std::mem::take(&mut growing.since);
            let parts = std::mem::take(&mut growing.parts);
            let findings = self.findings(&self.samples[index], &ended, &parts)?;
            let end = End {
                index,
                ended,
                since,
                usage,
                findings,
            };
            self.writer.end(end, out);
        }
        Ok(())
    }

    /// Writes the last frames of a stream.
    pub fn closing(&mut self, out: &mut String) {
        self.settle(ANSWERED);
        let usage = self.usage();
        self.writer.closing(usage, out);
    }

    /// Writes the last frames of a stream that failed.
    pub fn failed(&mut self, error: &ApiError, out: &mut String) {
        self.settle(error.code());
        self.writer.failed(error, out);
    }

    /// Returns the tokens used so far: each prompt once, and the tokens written by all samples.
    fn usage(&self) -> Usage {
        let mut usage = self.weighed;
        for (index, growing) in self.samples.iter().enumerate() {
            let written = growing.ended.map(|ended| ended.completion_tokens);
            usage.completion_tokens += written.unwrap_or_else(|| growing.sample.tokens());
            let details = &mut usage.completion_tokens_details;
            details.reasoning_tokens += growing.thought.as_ref().map_or(0, PreambleTokens::count);
            if let Some((accepted, rejected)) = growing.ended.map(|ended| ended.predictions) {
                details.accepted_prediction_tokens += accepted;
                details.rejected_prediction_tokens += rejected;
            }
            if let Some(ended) = growing.ended.filter(|_| self.counts_prompt(index)) {
                usage.prompt_tokens += ended.prompt_tokens;
                usage.prompt_tokens_details.cached_tokens += ended.cached_tokens;
            }
        }
        usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
        usage
    }
}

fn whole(index: usize, reading: &OutputFormat, parts: Vec<Part>, ended: Ended) -> Whole {
    let mut whole = Whole {
        index,
        reasoning: String::new(),
        content: String::new(),
        calls: Vec::new(),
        logprobs: Vec::new(),
        ended,
        findings: Findings::default(),
    };
    for part in parts {
        match part {
            Part::Reasoning(text) => whole.reasoning.push_str(&text),
            Part::Content(text) => whole.content.push_str(&text),
            Part::Opened(tool) => whole.calls.push(opened(reading, tool)),
            Part::Input(text) => {
                if let Some(call) = whole.calls.last_mut() {
                    call.input.push_str(&text);
                }
            }
            Part::Closed => {}
        }
    }
    whole
}

fn taken(now: bool, since: &mut PendingTokens) -> PendingTokens {
    if now {
        std::mem::take(since)
    } else {
        PendingTokens::default()
    }
}

impl Drop for AnswerBuilder {
    fn drop(&mut self) {
        let usage = self.usage();
        // An answer without an account was never begun: the queue had no room for it.
        if !self.settled && self.account.is_some() {
            let phase = if self.silent { Phase::Queue } else { Phase::Decode };
            self.served.metrics().abandoned(phase);
            if let Some(account) = &mut self.account {
                account.note(PHASE, phase.name());
            }
        }
        if let Some(account) = &mut self.account {
            account.used(usage);
        }
    }
}
