//! The shapes of `POST /v1/chat/completions`.

use std::sync::Arc;

use lexiform_syntax::answer::{JsonEvent, JsonValues};
use serde_json::Value;

use crate::answer::json_patch;
use crate::answer::parts::{OutputFormat, Part};
use crate::answer::sample::Ended;
use crate::answer::writer::{Base, Call, End, Piece, Stage, Whole, Writer, opened, sse_event, told};
use crate::wire::generation::StreamOptions;
use crate::wire::response::{
    Called, ChatChoice, ChatDelta, ChatLogprobs, ChatMessage, Delta, TokenLogprob, ToolCall, Usage,
};
use crate::wire::tools::Mode;

/// The `object` field of a chunk of a stream.
const CHUNK: &str = "chat.completion.chunk";

/// Writes chat completions.
pub struct ChatWriter {
    base: Base,
    reading: Arc<OutputFormat>,
    options: StreamOptions,
    logprobs: bool,
    reasoning: bool,
    /// For each sample: the number of calls begun, and whether the last one calls a custom tool.
    calls: Vec<(usize, bool)>,
    /// The JSON value of each sample as it grows, if the request asks for it.
    progress: Vec<JsonValues>,
}

impl ChatWriter {
    /// Creates the writer of this answer; `reasoning` says whether thoughts are shown.
    pub fn new(
        base: Base,
        reading: Arc<OutputFormat>,
        options: StreamOptions,
        logprobs: bool,
        reasoning: bool,
    ) -> Self {
        Self {
            base,
            reading,
            options,
            logprobs,
            reasoning,
            calls: Vec::new(),
            progress: Vec::new(),
        }
    }

    fn send(&self, stage: Stage, choice: ChatDelta, usage: Usage, out: &mut String) {
        let usage = self.options.continuous_usage.then_some(usage);
        sse_event(&self.base.encode((CHUNK, stage), vec![choice], usage), out);
    }

    fn logprobs(&self, content: Vec<TokenLogprob>) -> Option<ChatLogprobs> {
        self.logprobs.then_some(ChatLogprobs {
            content,
            refusal: None,
        })
    }

    /// Returns the changes to the value of a sample made by the text read last.
    fn patch(&mut self, index: usize, read: impl FnOnce(&mut JsonValues) -> Vec<JsonEvent>) -> Vec<Value> {
        let Some(progress) = self.progress.get_mut(index) else {
            return Vec::new();
        };
        let found = read(progress);
        json_patch::operations(progress, found)
    }

    /// Returns the change to the message made by a part, if it is visible to the client.
    fn delta(&mut self, index: usize, part: Part) -> Option<Delta> {
        let mut delta = Delta::default();
        match part {
            Part::Reasoning(_) if !self.reasoning => return None,
            Part::Reasoning(text) => {
                delta.reasoning = Some(text.clone());
                delta.reasoning_content = Some(text);
            }
            Part::Content(text) => delta.content = Some(text),
            Part::Opened(tool) => {
                let call = opened(&self.reading, tool);
                let place = self.calls[index].0;
                self.calls[index] = (place + 1, call.custom);
                delta.tool_calls = vec![wire_call(call, Some(place))];
            }
            Part::Input(text) => {
                let (count, custom) = self.calls[index];
                delta.tool_calls = vec![more_input(count.saturating_sub(1), custom, text)];
            }
            Part::Closed => return None,
        }
        Some(delta)
    }

    fn choice(&self, sample: Whole) -> ChatChoice {
        let called = !sample.calls.is_empty();
        let calls = sample.calls.into_iter().map(|call| wire_call(call, None));
        let content = (!called || !sample.content.is_empty()).then_some(sample.content);
        let reasoning = (self.reasoning && !sample.reasoning.is_empty()).then_some(sample.reasoning);
        let message = ChatMessage {
            role: "assistant",
            content,
            refusal: None,
            annotations: [],
            tool_calls: calls.collect(),
            reasoning_content: reasoning.clone(),
            reasoning,
        };
        ChatChoice {
            index: sample.index,
            message,
            logprobs: self.logprobs(sample.logprobs),
            finish_reason: finish(&sample.ended, called),
            lexiform: told(&sample.ended, sample.findings),
        }
    }
}

impl Writer for ChatWriter {
    fn opening(&mut self, samples: usize, _: &mut String) {
        self.calls = vec![(0, false); samples];
        if self.options.json_patch {
            self.progress.resize_with(samples, JsonValues::default);
        }
    }

    fn begin(&mut self, index: usize, out: &mut String) {
        let only_calls = self
            .reading
            .calls
            .as_ref()
            .is_some_and(|calls| calls.mode != Mode::Auto);
        let delta = Delta {
            role: Some("assistant"),
            content: (!only_calls).then(String::new),
            refusal: Some(()),
            ..Delta::default()
        };
        self.send(Stage::Beginning, chat_delta(index, delta), Usage::default(), out);
    }

    fn piece(&mut self, piece: Piece, out: &mut String) {
        let patch = match &piece.part {
            Part::Content(text) => self.patch(piece.index, |progress| progress.push(text)),
            _ => Vec::new(),
        };
        let Some(delta) = self.delta(piece.index, piece.part) else {
            return;
        };
        let mut choice = chat_delta(piece.index, delta);
        choice.logprobs = self.logprobs(piece.since.logprobs);
        choice.lexiform_tokens = piece.since.tokens;
        choice.lexiform_patch = patch;
        self.send(Stage::Middle, choice, piece.usage, out);
    }

    fn end(&mut self, end: End, out: &mut String) {
        let mut choice = chat_delta(end.index, Delta::default());
        if !end.since.logprobs.is_empty() {
            choice.logprobs = self.logprobs(end.since.logprobs);
        }
        choice.lexiform_tokens = end.since.tokens;
        choice.lexiform_patch = self.patch(end.index, JsonValues::finish);
        choice.finish_reason = Some(finish(&end.ended, self.calls[end.index].0 > 0));
        choice.lexiform = Some(told(&end.ended, end.findings));
        self.send(Stage::End, choice, end.usage, out);
    }

    fn closing(&mut self, usage: Usage, out: &mut String) {
        if self.options.include_usage {
            let last = (CHUNK, Stage::Middle);
            let chunk = self.base.encode::<ChatDelta>(last, Vec::new(), Some(usage));
            sse_event(&chunk, out);
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn whole(&self, samples: Vec<Whole>, usage: Usage) -> String {
        let choices = samples.into_iter().map(|sample| self.choice(sample)).collect();
        self.base
            .encode(("chat.completion", Stage::End), choices, Some(usage))
    }
}

fn finish(ended: &Ended, called: bool) -> &'static str {
    if called && ended.finish == "stop" {
        "tool_calls"
    } else {
        ended.finish
    }
}

fn chat_delta(index: usize, delta: Delta) -> ChatDelta {
    ChatDelta {
        index,
        delta,
        logprobs: None,
        finish_reason: None,
        lexiform_tokens: Vec::new(),
        lexiform_patch: Vec::new(),
        lexiform: None,
    }
}

/// Converts a call with its name; `place` is set only in streams.
fn wire_call(call: Call, place: Option<usize>) -> ToolCall {
    ToolCall {
        index: place,
        id: Some(call.id),
        kind: Some(if call.custom { "custom" } else { "function" }),
        called: called(call.custom, Some(call.name), call.input),
    }
}

fn more_input(place: usize, custom: bool, text: String) -> ToolCall {
    ToolCall {
        index: Some(place),
        id: None,
        kind: None,
        called: called(custom, None, text),
    }
}

fn called(custom: bool, name: Option<String>, text: String) -> Called {
    match custom {
        true => Called::Custom { name, input: text },
        false => Called::Function {
            name,
            arguments: text,
        },
    }
}
