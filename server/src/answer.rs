//! What chats and completions share in the shape of their answers, streamed or whole.
//!
//! ```text
//!   (sample, event) ─► SampleState ─► News ─► Frame ─► {chat,completion}[.chunk] ─► bytes
//! ```

use std::sync::Arc;

use crate::error::ApiError;
use crate::sample::{Ended, News, SampleState};
use crate::served::Served;
use crate::wire::generation::{Generation, StreamOptions};
use crate::wire::response::{
    Answer, ChatChoice, ChatDelta, ChatLogprobs, ChatMessage, Choice, Delta, FunctionCall, TextChoice,
    TextLogprobs, TokenLogprob, ToolCall, Usage,
};
use crate::worker::Running;

/// The version that clients see as `system_fingerprint`.
const FINGERPRINT: &str = concat!("lexiform-", env!("CARGO_PKG_VERSION"));

/// Which route's shapes an answer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A chat's message.
    Chat,
    /// A chat's message that calls this tool.
    Tool(String),
    /// A completion's text.
    Text,
}

/// An answer in the making.
pub struct Frame {
    served: Arc<Served>,
    shape: Shape,
    id: String,
    created: u64,
    samples: Vec<SampleState>,
    /// Samples with the same prompt stand together, this many of them; the prompt counts once.
    per_prompt: usize,
    ended: Vec<Option<Ended>>,
    logprobs: bool,
    offsets: Vec<usize>,
}

impl Frame {
    /// An answer of this many samples.
    pub fn new(
        served: Arc<Served>,
        shape: Shape,
        generation: &Generation,
        count: usize,
        logprobs: bool,
    ) -> Self {
        let prefix = if shape == Shape::Text { "cmpl" } else { "chatcmpl" };
        let sample = || SampleState::new(&generation.stop, generation.include_stop, logprobs);
        Self {
            served,
            shape,
            id: format!("{prefix}-{}", crate::chance::identity()),
            created: crate::chance::now(),
            samples: std::iter::repeat_with(sample).take(count).collect(),
            per_prompt: generation.n,
            ended: vec![None; count],
            logprobs,
            offsets: vec![0; count],
        }
    }

    /// Waits for all samples and gives the whole answer as JSON.
    ///
    /// # Errors
    /// The engine failed.
    pub async fn collect(mut self, mut running: Running) -> Result<String, ApiError> {
        let mut texts = vec![String::new(); self.samples.len()];
        let mut logprobs: Vec<Vec<TokenLogprob>> = vec![Vec::new(); self.samples.len()];
        while !self.complete() {
            let (index, event) = running.next().await.ok_or_else(ApiError::internal)?;
            let news = self.take(index, event, &mut running)?;
            texts[index].push_str(&news.text);
            logprobs[index].extend(news.logprobs);
        }
        let whole = texts.into_iter().zip(logprobs).enumerate();
        if self.shape == Shape::Text {
            let choices = whole
                .filter_map(|(index, (text, logprobs))| self.text_choice(index, text, logprobs))
                .collect();
            Ok(self.encode("text_completion", choices, Some(self.usage())))
        } else {
            let choices = whole
                .filter_map(|(index, (text, logprobs))| self.chat_choice(index, text, logprobs))
                .collect();
            Ok(self.encode("chat.completion", choices, Some(self.usage())))
        }
    }

    /// Whether every sample has ended.
    pub fn complete(&self) -> bool {
        self.ended.iter().all(Option::is_some)
    }

    /// Hands an event to its sample and ends a sample that found its stop string.
    fn take(
        &mut self,
        index: usize,
        event: lexiform_engine::Event,
        running: &mut Running,
    ) -> Result<News, ApiError> {
        let Some(sample) = self.samples.get_mut(index) else {
            return Err(ApiError::internal());
        };
        let news = sample.on(event, self.served.vocabulary())?;
        if sample.wants_no_more() {
            running.cancel(index);
        }
        if let Some(ended) = news.ended {
            self.ended[index] = Some(ended);
            self.served.metrics().finished(&ended);
        }
        Ok(news)
    }

    /// The first frames of a stream: who speaks.
    pub fn opening(&self, options: StreamOptions, out: &mut String) {
        if self.shape == Shape::Text {
            return;
        }
        for index in 0..self.samples.len() {
            let mut delta = Delta {
                role: Some("assistant"),
                content: Some(String::new()),
                refusal: Some(()),
                ..Delta::default()
            };
            if let Shape::Tool(name) = &self.shape {
                delta.content = None;
                delta.tool_calls = vec![opened_call(name, Some(0), String::new())];
            }
            self.send(vec![chat_delta(index, delta, None, None)], options, out);
        }
    }

    /// The frames that an event gives rise to.
    ///
    /// # Errors
    /// The engine failed.
    pub fn event(
        &mut self,
        index: usize,
        event: lexiform_engine::Event,
        running: &mut Running,
        options: StreamOptions,
        out: &mut String,
    ) -> Result<(), ApiError> {
        let news = self.take(index, event, running)?;
        let ended = news.ended;
        if !news.text.is_empty() || !news.logprobs.is_empty() {
            self.send_text(index, news, options, out);
        }
        if let Some(ended) = ended {
            self.send_end(index, &ended, options, out);
        }
        Ok(())
    }

    fn send_text(&mut self, index: usize, news: News, options: StreamOptions, out: &mut String) {
        if self.shape == Shape::Text {
            let logprobs = self
                .logprobs
                .then(|| text_logprobs(&news.logprobs, self.offsets[index]));
            self.offsets[index] += news.text.chars().count();
            let choice = TextChoice {
                index,
                text: news.text,
                logprobs,
                finish_reason: None,
                lexiform: None,
            };
            return self.send(vec![choice], options, out);
        }
        let mut delta = Delta::default();
        if matches!(self.shape, Shape::Tool(_)) {
            let function = FunctionCall {
                name: None,
                arguments: news.text,
            };
            delta.tool_calls = vec![ToolCall {
                index: Some(0),
                id: None,
                kind: None,
                function,
            }];
        } else {
            delta.content = Some(news.text);
        }
        let logprobs = self.logprobs.then_some(ChatLogprobs {
            content: news.logprobs,
            refusal: None,
        });
        let mut choice = chat_delta(index, delta, None, None);
        choice.logprobs = logprobs;
        self.send(vec![choice], options, out);
    }

    fn send_end(&self, index: usize, ended: &Ended, options: StreamOptions, out: &mut String) {
        let (finish, sample) = (Some(self.finish(ended)), Some(ended.sample));
        if self.shape == Shape::Text {
            let choice = TextChoice {
                index,
                text: String::new(),
                logprobs: None,
                finish_reason: finish,
                lexiform: sample,
            };
            self.send(vec![choice], options, out);
        } else {
            self.send(
                vec![chat_delta(index, Delta::default(), finish, sample)],
                options,
                out,
            );
        }
    }

    /// The last frames of a stream.
    pub fn closing(&self, options: StreamOptions, out: &mut String) {
        if options.include_usage {
            let chunk = self.encode::<ChatDelta>(self.chunk_object(), Vec::new(), Some(self.usage()));
            frame(&chunk, out);
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn send<C: Choice>(&self, choices: Vec<C>, options: StreamOptions, out: &mut String) {
        let usage = options.continuous_usage.then(|| self.usage());
        frame(&self.encode(self.chunk_object(), choices, usage), out);
    }

    fn chunk_object(&self) -> &'static str {
        if self.shape == Shape::Text {
            "text_completion"
        } else {
            "chat.completion.chunk"
        }
    }

    fn encode<C: Choice>(&self, object: &str, choices: Vec<C>, usage: Option<Usage>) -> String {
        let answer = Answer {
            id: &self.id,
            object,
            created: self.created,
            model: self.served.name(),
            system_fingerprint: FINGERPRINT,
            choices,
            usage,
        };
        answer.to_json()
    }

    fn finish(&self, ended: &Ended) -> &'static str {
        match (&self.shape, ended.finish) {
            (Shape::Tool(_), "stop") => "tool_calls",
            (_, finish) => finish,
        }
    }

    fn chat_choice(&self, index: usize, text: String, logprobs: Vec<TokenLogprob>) -> Option<ChatChoice> {
        let ended = self.ended[index]?;
        let mut message = ChatMessage {
            role: "assistant",
            content: None,
            refusal: None,
            annotations: [],
            tool_calls: Vec::new(),
        };
        match &self.shape {
            Shape::Tool(name) => message.tool_calls = vec![opened_call(name, None, text)],
            _ => message.content = Some(text),
        }
        let logprobs = self.logprobs.then_some(ChatLogprobs {
            content: logprobs,
            refusal: None,
        });
        Some(ChatChoice {
            index,
            message,
            logprobs,
            finish_reason: self.finish(&ended),
            lexiform: ended.sample,
        })
    }

    fn text_choice(&self, index: usize, text: String, logprobs: Vec<TokenLogprob>) -> Option<TextChoice> {
        let ended = self.ended[index]?;
        let logprobs = self.logprobs.then(|| text_logprobs(&logprobs, 0));
        Some(TextChoice {
            index,
            text,
            logprobs,
            finish_reason: Some(ended.finish),
            lexiform: Some(ended.sample),
        })
    }

    /// The tokens used so far: each prompt once, what was written of all samples.
    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for (index, (sample, ended)) in self.samples.iter().zip(&self.ended).enumerate() {
            usage.completion_tokens += ended.map_or(sample.tokens(), |ended| ended.completion_tokens);
            if let Some(ended) = ended.filter(|_| index % self.per_prompt == 0) {
                usage.prompt_tokens += ended.prompt_tokens;
                usage.prompt_tokens_details.cached_tokens += ended.cached_tokens;
            }
        }
        usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
        usage
    }
}

fn chat_delta(
    index: usize,
    delta: Delta,
    finish_reason: Option<&'static str>,
    lexiform: Option<crate::wire::response::Sample>,
) -> ChatDelta {
    ChatDelta {
        index,
        delta,
        logprobs: None,
        finish_reason,
        lexiform,
    }
}

fn opened_call(name: &str, index: Option<usize>, arguments: String) -> ToolCall {
    ToolCall {
        index,
        id: Some(format!("call_{}", crate::chance::identity())),
        kind: Some("function"),
        function: FunctionCall {
            name: Some(name.to_owned()),
            arguments,
        },
    }
}

fn text_logprobs(entries: &[TokenLogprob], mut offset: usize) -> TextLogprobs {
    let mut out = TextLogprobs::default();
    for entry in entries {
        out.text_offset.push(offset);
        offset += entry.token.chars().count();
        out.tokens.push(entry.token.clone());
        out.token_logprobs.push(entry.logprob);
        let top = entry
            .top_logprobs
            .iter()
            .map(|top| (top.token.clone(), top.logprob.into()));
        out.top_logprobs.push(top.collect());
    }
    out
}

/// Writes one event of a stream.
pub fn frame(json: &str, out: &mut String) {
    out.push_str("data: ");
    out.push_str(json);
    out.push_str("\n\n");
}
