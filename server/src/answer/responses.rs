//! The shapes of `POST /v1/responses`: items, and a stream of events that build them up.
//!
//! ```text
//!   created, in_progress
//!     output_item.added ─► content_part.added ─► output_text.delta … ─► output_text.done, content_part.done ─┐
//!     output_item.added ─► function_call_arguments.delta … ─► function_call_arguments.done ──────────────────┤
//!     output_item.done ◄─────────────────────────────────────────────────────────────────────────────────────┘
//!   completed | incomplete
//! ```

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::answer::parts::{OutputFormat, Part};
use crate::answer::writer::{Base, End, Piece, Whole, Writer, opened, told};
use crate::wire::error::ApiError;
use crate::wire::response::{Extension, TokenLogprob, Told, Usage, event, logprobs_json, response_extension};

/// Writes responses.
pub struct ResponsesWriter {
    base: Base,
    reading: Arc<OutputFormat>,
    repeated: Map<String, Value>,
    logprobs: bool,
    sequence: u64,
    /// The items that are complete.
    done: Vec<Value>,
    open: Option<Item>,
    finish: &'static str,
    told: Option<Told>,
}

/// The item that is being written.
struct Item {
    kind: ItemKind,
    id: String,
    call_id: String,
    name: String,
    text: String,
    logprobs: Vec<TokenLogprob>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Reasoning,
    Message,
    Function,
    Custom,
}

impl ItemKind {
    fn prefix(self) -> &'static str {
        match self {
            ItemKind::Reasoning => "rs",
            ItemKind::Message => "msg",
            ItemKind::Function => "fc",
            ItemKind::Custom => "ctc",
        }
    }

    /// Returns the events that carry its text, and the field of the last one that holds all of it.
    fn events(self) -> (&'static str, &'static str, &'static str) {
        match self {
            ItemKind::Reasoning => (
                "response.reasoning_text.delta",
                "response.reasoning_text.done",
                "text",
            ),
            ItemKind::Message => ("response.output_text.delta", "response.output_text.done", "text"),
            ItemKind::Function => (
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
                "arguments",
            ),
            ItemKind::Custom => (
                "response.custom_tool_call_input.delta",
                "response.custom_tool_call_input.done",
                "input",
            ),
        }
    }

    fn has_parts(self) -> bool {
        matches!(self, ItemKind::Reasoning | ItemKind::Message)
    }
}

impl Item {
    fn new(kind: ItemKind) -> Self {
        Self {
            kind,
            id: format!("{}_{}", kind.prefix(), crate::operate::random::identity()),
            call_id: String::new(),
            name: String::new(),
            text: String::new(),
            logprobs: Vec::new(),
        }
    }

    /// Returns the content part of the item.
    fn part(&self) -> Value {
        match self.kind {
            ItemKind::Reasoning => json!({"type": "reasoning_text", "text": self.text}),
            _ => json!({"type": "output_text", "text": self.text, "annotations": [],
                        "logprobs": logprobs_json(&self.logprobs)}),
        }
    }

    fn json(&self, status: &str) -> Value {
        let (id, text) = (self.id.as_str(), self.text.as_str());
        let begun = status == "in_progress";
        let content = || if begun { json!([]) } else { json!([self.part()]) };
        match self.kind {
            ItemKind::Reasoning => {
                json!({"id": id, "type": "reasoning", "status": status, "summary": [], "content": content()})
            }
            ItemKind::Message => {
                json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content()})
            }
            ItemKind::Function => json!({"id": id, "type": "function_call", "status": status,
                                     "call_id": self.call_id, "name": self.name, "arguments": text}),
            ItemKind::Custom => json!({"id": id, "type": "custom_tool_call", "status": status,
                                   "call_id": self.call_id, "name": self.name, "input": text}),
        }
    }
}

impl ResponsesWriter {
    /// Creates the writer of this answer, which repeats these fields of its request.
    pub fn new(base: Base, reading: Arc<OutputFormat>, repeated: Map<String, Value>, logprobs: bool) -> Self {
        Self {
            base,
            reading,
            repeated,
            logprobs,
            sequence: 0,
            done: Vec::new(),
            open: None,
            finish: "stop",
            told: None,
        }
    }

    /// Returns the response in its current state.
    fn response(&self, status: &str, output: &[Value], usage: Option<Usage>, told: Option<&Told>) -> Value {
        let cut = json!({"reason": "max_output_tokens"});
        let mut response = json!({
            "id": self.base.id, "object": "response", "created_at": self.base.created, "status": status,
            "error": null, "incomplete_details": if status == "incomplete" { cut } else { Value::Null },
            "model": self.base.model, "output": output, "store": false,
            "usage": usage.map(responses_usage),
        });
        if let Some(map) = response.as_object_mut() {
            map.extend(self.repeated.clone());
            let begins = status == "in_progress";
            let enforcement = if begins {
                &self.base.announced
            } else {
                &self.base.enforcement
            };
            let extension = Extension::of(enforcement.as_ref(), self.base.weights, &self.base.ignored);
            map.extend(response_extension(extension, told));
        }
        response
    }

    fn send(&mut self, name: &str, mut body: Value, out: &mut String) {
        body["type"] = json!(name);
        body["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        event(name, &body, out);
    }

    /// Writes an event about the open item, with `more` merged into it.
    fn send_item(&mut self, name: &str, more: Value, out: &mut String) {
        let Some(item) = &self.open else { return };
        let mut body = json!({"item_id": item.id, "output_index": self.done.len()});
        if item.kind.has_parts() {
            body["content_index"] = json!(0);
        }
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        self.send(name, body, out);
    }

    fn begin(&mut self, item: Item, out: &mut String) {
        self.close("completed", out);
        let added = json!({"output_index": self.done.len(), "item": item.json("in_progress")});
        let part = item.kind.has_parts().then(|| item.part());
        self.open = Some(item);
        self.send("response.output_item.added", added, out);
        if let Some(part) = part {
            self.send_item("response.content_part.added", json!({"part": part}), out);
        }
    }

    fn close(&mut self, status: &str, out: &mut String) {
        let Some(item) = &self.open else { return };
        let (kind, part, text) = (item.kind, item.part(), item.text.clone());
        let (whole, logprobs, name) = (
            item.json(status),
            logprobs_json(&item.logprobs),
            item.name.clone(),
        );
        let (_, done, field) = kind.events();
        let mut last = json!({field: text});
        match kind {
            ItemKind::Message => last["logprobs"] = logprobs,
            ItemKind::Function => last["name"] = json!(name),
            ItemKind::Reasoning | ItemKind::Custom => {}
        }
        self.send_item(done, last, out);
        if kind.has_parts() {
            self.send_item("response.content_part.done", json!({"part": part}), out);
        }
        let ended = json!({"output_index": self.done.len(), "item": whole.clone()});
        self.send("response.output_item.done", ended, out);
        self.done.push(whole);
        self.open = None;
    }

    fn text(&mut self, kind: ItemKind, text: String, logprobs: Vec<TokenLogprob>, out: &mut String) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.begin(Item::new(kind), out);
        }
        let mut more = json!({"delta": text});
        if kind == ItemKind::Message {
            more["logprobs"] = logprobs_json(&logprobs);
        }
        if let Some(item) = &mut self.open {
            item.text.push_str(&text);
            item.logprobs.extend(logprobs);
        }
        self.send_item(kind.events().0, more, out);
    }

    fn call(&mut self, tool: usize, out: &mut String) {
        let call = opened(&self.reading, tool);
        let kind = if call.custom {
            ItemKind::Custom
        } else {
            ItemKind::Function
        };
        let mut item = Item::new(kind);
        (item.call_id, item.name) = (call.id, call.name);
        self.begin(item, out);
    }

    fn items(&self, sample: &Whole) -> Vec<Value> {
        let status = status(sample.ended.finish);
        let mut items = Vec::new();
        if !sample.reasoning.is_empty() {
            let mut item = Item::new(ItemKind::Reasoning);
            item.text.clone_from(&sample.reasoning);
            items.push(item.json("completed"));
        }
        if !sample.content.is_empty() || sample.calls.is_empty() {
            let mut item = Item::new(ItemKind::Message);
            item.text.clone_from(&sample.content);
            if self.logprobs {
                item.logprobs.clone_from(&sample.logprobs);
            }
            items.push(item.json(if sample.calls.is_empty() {
                status
            } else {
                "completed"
            }));
        }
        for (place, call) in sample.calls.iter().enumerate() {
            let mut item = Item::new(if call.custom {
                ItemKind::Custom
            } else {
                ItemKind::Function
            });
            item.call_id.clone_from(&call.id);
            item.name.clone_from(&call.name);
            item.text.clone_from(&call.input);
            let last = place + 1 == sample.calls.len();
            items.push(item.json(if last { status } else { "completed" }));
        }
        items
    }
}

impl Writer for ResponsesWriter {
    fn opening(&mut self, _: usize, out: &mut String) {
        let response = self.response("in_progress", &[], None, None);
        self.send("response.created", json!({"response": response}), out);
        self.send("response.in_progress", json!({"response": response}), out);
    }

    fn piece(&mut self, piece: Piece, out: &mut String) {
        let logprobs = if self.logprobs {
            piece.since.logprobs
        } else {
            Vec::new()
        };
        match piece.part {
            Part::Reasoning(text) => self.text(ItemKind::Reasoning, text, Vec::new(), out),
            Part::Content(text) => self.text(ItemKind::Message, text, logprobs, out),
            Part::Opened(tool) => self.call(tool, out),
            Part::Input(text) => {
                let kind = self.open.as_ref().map_or(ItemKind::Function, |open| open.kind);
                self.text(kind, text, Vec::new(), out);
            }
            Part::Closed => self.close("completed", out),
        }
    }

    fn end(&mut self, end: End, out: &mut String) {
        if self.open.is_none() && self.done.is_empty() {
            self.begin(Item::new(ItemKind::Message), out);
        }
        self.close(status(end.ended.finish), out);
        self.finish = end.ended.finish;
        self.told = Some(told(&end.ended, end.findings));
    }

    fn closing(&mut self, usage: Usage, out: &mut String) {
        let status = status(self.finish);
        let done = std::mem::take(&mut self.done);
        let response = self.response(status, &done, Some(usage), self.told.as_ref());
        self.send(&format!("response.{status}"), json!({"response": response}), out);
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        let envelope = serde_json::to_value(error.envelope()).unwrap_or_default();
        let body = json!({"code": envelope["error"]["code"], "message": envelope["error"]["message"],
                          "param": envelope["error"]["param"]});
        self.send("error", body, out);
    }

    fn whole(&self, samples: Vec<Whole>, usage: Usage) -> String {
        let finish = samples.first().map_or("stop", |sample| sample.ended.finish);
        let items = samples
            .first()
            .map(|sample| self.items(sample))
            .unwrap_or_default();
        let told = samples.into_iter().next();
        let told = told.map(told_of);
        self.response(status(finish), &items, Some(usage), told.as_ref())
            .to_string()
    }
}

fn told_of(sample: Whole) -> Told {
    told(&sample.ended, sample.findings)
}

fn status(finish: &str) -> &'static str {
    if finish == "length" {
        "incomplete"
    } else {
        "completed"
    }
}

/// Returns the tokens used, in the format of this route.
pub fn responses_usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.prompt_tokens_details.cached_tokens, "cache_write_tokens": 0,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.completion_tokens_details.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    })
}
