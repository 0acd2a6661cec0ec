//! An answer in the making: samples grow side by side, and a writer puts their parts into the shapes of a route.
//!
//! ```text
//!   (sample, event) ─► SampleState ─► text ─► Reader ─► parts ─► Writer ─► bytes
//!                                                                ├ chat        chat.completion[.chunk]
//!                                                                ├ text        text_completion
//!                                                                └ responses   response, response.*
//! ```

pub mod chat;
pub mod responses;
pub mod text;

use std::sync::Arc;
use std::time::Instant;

use lexiform_engine::Event;

use crate::audit::Account;
use crate::channels::{Part, Reader, Reading};
use crate::error::ApiError;
use crate::sample::{Ended, SampleState};
use crate::served::Served;
use crate::wire::generation::Generation;
use crate::wire::response::{TokenLogprob, Usage};
use crate::worker::Running;

/// The version that clients see as `system_fingerprint`.
pub const FINGERPRINT: &str = concat!("lexiform-", env!("CARGO_PKG_VERSION"));

/// What all shapes tell of an answer.
#[derive(Clone, Debug)]
pub struct Base {
    /// The identity of the answer; the same for all its chunks.
    pub id: String,
    /// When it was begun, in seconds.
    pub created: u64,
    /// The model.
    pub model: String,
}

impl Base {
    /// Of a new answer, with an identity of this kind.
    pub fn new(prefix: &str, served: &Served) -> Self {
        Self {
            id: format!("{prefix}{}", crate::chance::identity()),
            created: crate::chance::now(),
            model: served.name().to_owned(),
        }
    }
}

/// A call of a tool, as far as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its identity.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Whether the tool takes raw text.
    pub custom: bool,
    /// What it is called with.
    pub input: String,
}

/// A sample that has ended, whole.
#[derive(Debug)]
pub struct Whole {
    /// Its number.
    pub index: usize,
    /// What the model thought.
    pub reasoning: String,
    /// What it said.
    pub content: String,
    /// What it called.
    pub calls: Vec<Call>,
    /// Log-probabilities of its tokens.
    pub logprobs: Vec<TokenLogprob>,
    /// How it ended.
    pub ended: Ended,
}

/// One more part of a sample of a stream.
#[derive(Debug)]
pub struct Piece {
    /// The sample.
    pub index: usize,
    /// The part.
    pub part: Part,
    /// Log-probabilities of the tokens that came since the last piece.
    pub logprobs: Vec<TokenLogprob>,
    /// The tokens used so far.
    pub usage: Usage,
}

/// The shapes of a route.
pub trait Writer: Send {
    /// The first frames of a stream of so many samples.
    fn opening(&mut self, samples: usize, out: &mut String);
    /// One more part.
    fn piece(&mut self, piece: Piece, out: &mut String);
    /// A sample has ended; `logprobs` are those that came with no part.
    fn end(
        &mut self,
        index: usize,
        ended: &Ended,
        logprobs: Vec<TokenLogprob>,
        usage: Usage,
        out: &mut String,
    );
    /// The last frames of a stream.
    fn closing(&mut self, usage: Usage, out: &mut String);
    /// The frames that tell of an error in the middle of a stream.
    fn failed(&mut self, error: &ApiError, out: &mut String) {
        frame(&serde_json::to_string(&error.envelope()).unwrap_or_default(), out);
    }
    /// The whole answer.
    fn whole(&self, samples: Vec<Whole>, usage: Usage) -> String;
}

struct Growing {
    sample: SampleState,
    reader: Reader,
    logprobs: Vec<TokenLogprob>,
    thought_tokens: usize,
    ended: Option<Ended>,
}

/// An answer in the making.
pub struct Frame {
    served: Arc<Served>,
    writer: Box<dyn Writer>,
    reading: Arc<Reading>,
    samples: Vec<Growing>,
    /// Samples with the same prompt stand together, this many of them; the prompt counts once.
    per_prompt: usize,
    account: Option<Account>,
    begun: Instant,
    silent: bool,
}

impl Frame {
    /// An answer of this many samples.
    pub fn new(
        served: Arc<Served>,
        writer: Box<dyn Writer>,
        reading: Arc<Reading>,
        generation: &Generation,
        count: usize,
        logprobs: bool,
    ) -> Self {
        let growing = || Growing {
            sample: SampleState::new(&generation.stop, generation.include_stop, logprobs),
            reader: Reader::new(reading.clone()),
            logprobs: Vec::new(),
            thought_tokens: 0,
            ended: None,
        };
        Self {
            served,
            writer,
            samples: std::iter::repeat_with(growing).take(count).collect(),
            reading,
            per_prompt: generation.n.max(1),
            account: None,
            begun: Instant::now(),
            silent: true,
        }
    }

    /// Puts what this answer costs on an account.
    pub fn charge(&mut self, account: Account) {
        self.account = Some(account);
    }

    /// Closes the account.
    fn settle(&mut self, verdict: &'static str) {
        self.served.metrics().whole(self.begun.elapsed());
        let usage = self.usage();
        if let Some(account) = &mut self.account {
            account.end(verdict, usage);
        }
    }

    /// Waits for all samples and gives the whole answer as JSON.
    ///
    /// # Errors
    /// The engine failed.
    pub async fn collect(mut self, mut running: Running) -> Result<String, ApiError> {
        match self.grow(&mut running).await {
            Ok(parts) => Ok(self.whole(parts)),
            Err(error) => {
                self.settle(error.code());
                Err(error)
            }
        }
    }

    async fn grow(&mut self, running: &mut Running) -> Result<Vec<Vec<Part>>, ApiError> {
        let mut parts: Vec<Vec<Part>> = self.samples.iter().map(|_| Vec::new()).collect();
        while !self.complete() {
            let (index, event) = running.next().await?;
            let read = self.take(index, event, running)?;
            parts[index].extend(read);
        }
        Ok(parts)
    }

    fn whole(&mut self, parts: Vec<Vec<Part>>) -> String {
        self.settle("answered");
        let usage = self.usage();
        let reading = self.reading.clone();
        let samples = self.samples.iter_mut().zip(parts).enumerate();
        let whole = samples.filter_map(|(index, (growing, parts))| {
            let logprobs = std::mem::take(&mut growing.logprobs);
            Some(whole(index, &reading, parts, logprobs, growing.ended?))
        });
        let whole = whole.collect();
        self.writer.whole(whole, usage)
    }

    /// Whether every sample has ended.
    pub fn complete(&self) -> bool {
        self.samples.iter().all(|growing| growing.ended.is_some())
    }

    /// Hands an event to its sample, ends a sample that found its stop string, and reads the text.
    fn take(&mut self, index: usize, event: Event, running: &mut Running) -> Result<Vec<Part>, ApiError> {
        if std::mem::take(&mut self.silent) {
            self.served.metrics().first_token(self.begun.elapsed());
        }
        let growing = self.samples.get_mut(index).ok_or_else(ApiError::internal)?;
        if matches!(event, Event::Token { .. }) && growing.reader.thinks() {
            growing.thought_tokens += 1;
        }
        let news = growing.sample.on(event, self.served.vocabulary())?;
        if growing.sample.wants_no_more() {
            running.cancel(index);
        }
        let mut parts = growing.reader.push(&news.text);
        growing.logprobs.extend(news.logprobs);
        if let Some(ended) = news.ended {
            parts.extend(growing.reader.finish());
            growing.ended = Some(ended);
            self.served.metrics().finished(&ended);
        }
        Ok(parts)
    }

    /// The first frames of a stream.
    pub fn opening(&mut self, out: &mut String) {
        self.writer.opening(self.samples.len(), out);
    }

    /// The frames that an event gives rise to.
    ///
    /// # Errors
    /// The engine failed.
    pub fn event(
        &mut self,
        index: usize,
        event: Event,
        running: &mut Running,
        out: &mut String,
    ) -> Result<(), ApiError> {
        let parts = self.take(index, event, running)?;
        let usage = self.usage();
        let growing = self.samples.get_mut(index).ok_or_else(ApiError::internal)?;
        for part in parts {
            let logprobs = std::mem::take(&mut growing.logprobs);
            let piece = Piece {
                index,
                part,
                logprobs,
                usage,
            };
            self.writer.piece(piece, out);
        }
        if let Some(ended) = growing.ended {
            let rest = std::mem::take(&mut growing.logprobs);
            self.writer.end(index, &ended, rest, usage, out);
        }
        Ok(())
    }

    /// The last frames of a stream.
    pub fn closing(&mut self, out: &mut String) {
        self.settle("answered");
        let usage = self.usage();
        self.writer.closing(usage, out);
    }

    /// The last frames of a stream that failed.
    pub fn failed(&mut self, error: &ApiError, out: &mut String) {
        self.settle(error.code());
        self.writer.failed(error, out);
    }

    /// The tokens used so far: each prompt once, what was written of all samples.
    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for (index, growing) in self.samples.iter().enumerate() {
            let written = growing.ended.map(|ended| ended.completion_tokens);
            usage.completion_tokens += written.unwrap_or_else(|| growing.sample.tokens());
            usage.completion_tokens_details.reasoning_tokens += growing.thought_tokens;
            if let Some(ended) = growing.ended.filter(|_| index % self.per_prompt == 0) {
                usage.prompt_tokens += ended.prompt_tokens;
                usage.prompt_tokens_details.cached_tokens += ended.cached_tokens;
            }
        }
        usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
        usage
    }
}

fn whole(
    index: usize,
    reading: &Reading,
    parts: Vec<Part>,
    logprobs: Vec<TokenLogprob>,
    ended: Ended,
) -> Whole {
    let mut whole = Whole {
        index,
        reasoning: String::new(),
        content: String::new(),
        calls: Vec::new(),
        logprobs,
        ended,
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

/// A call that begins.
pub fn opened(reading: &Reading, tool: usize) -> Call {
    let (name, custom) = reading.tool(tool);
    Call {
        id: format!("call_{}", crate::chance::identity()),
        name: name.to_owned(),
        custom,
        input: String::new(),
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let usage = self.usage();
        if !self.complete() {
            self.served.metrics().abandoned();
        }
        if let Some(account) = &mut self.account {
            account.used(usage);
        }
    }
}

/// Writes one event of a stream.
pub fn frame(json: &str, out: &mut String) {
    out.push_str("data: ");
    out.push_str(json);
    out.push_str("\n\n");
}
