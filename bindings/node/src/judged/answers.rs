//! Readers of answers: thoughts, content, calls of tools and the values of their arguments. Tools and
//! events are JSON texts here.

use std::sync::Arc;

use lexiform::answers::{AnswerFormat, Event, Events, Reading, Thought};
use lexiform::tags::Tool;
use napi::Result;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::error::{call_error, compile_error};

/// Reads the events of one answer.
#[napi]
pub struct AnswerReader {
    events: Events,
    bytes: usize,
    /// The bytes that are no code unit of UTF-16 of their own.
    extra: Vec<usize>,
}

#[napi]
impl AnswerReader {
    /// Creates a reader of answers in a format. `tools` is a list of names and schemas.
    #[napi(constructor, catch_unwind)]
    pub fn new(format: String, tools: String, thought: String, json_content: bool) -> Result<AnswerReader> {
        let tools: Vec<(String, Value)> =
            serde_json::from_str(&tools).map_err(|error| call_error(format!("the tools: {error}")))?;
        let tools: Vec<Tool> = tools
            .into_iter()
            .map(|(name, parameters)| Tool { name, parameters })
            .collect();
        let reading = Reading {
            thought: match thought.as_str() {
                "none" => Thought::None,
                "possible" => Thought::Possible,
                "begun" => Thought::Begun,
                other => {
                    let message = format!("`thought` is \"none\", \"possible\" or \"begun\", not {other:?}");
                    return Err(call_error(message));
                }
            },
            is_json: json_content,
        };
        let format =
            AnswerFormat::of_model(&format, &tools, reading).map_err(|error| compile_error(&error))?;
        Ok(AnswerReader {
            events: Events::new(Arc::new(format)),
            bytes: 0,
            extra: Vec::new(),
        })
    }

    /// Reads more text and returns its events.
    #[napi(catch_unwind)]
    pub fn push(&mut self, text: String) -> String {
        for (at, c) in text.char_indices() {
            let at = self.bytes + at;
            self.extra.extend(at + c.len_utf16()..at + c.len_utf8());
        }
        self.bytes += text.len();
        let events = self.events.push(&text);
        self.told(&events)
    }

    /// Ends the answer and returns the events of what was held back.
    #[napi(catch_unwind)]
    pub fn finish(&mut self) -> String {
        let events = self.events.finish();
        self.told(&events)
    }
}

impl AnswerReader {
    fn told(&self, events: &[Event]) -> String {
        let unit = |byte: usize| byte - self.extra.partition_point(|&at| at < byte);
        let told = events.iter().map(|event| {
            let mut told = event.to_json();
            told["span"] = json!([unit(event.span.start), unit(event.span.end)]);
            told
        });
        Value::Array(told.collect()).to_string()
    }
}
