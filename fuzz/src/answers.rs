//! Answers of models in every format: whatever the bytes are, reading them ends, loses nothing, and does not
//! depend on how they were cut.

use std::sync::{Arc, OnceLock};

use lexiform::answers::{AnswerFormat, Event, EventKind, Events, Reading, Thought};
use lexiform::tags::{Tool, model_formats};
use serde_json::json;

use super::clock::{COMPILE, within};

/// The formats, each with and without a thought that the prompt has opened.
fn formats() -> &'static [Arc<AnswerFormat>] {
    static FORMATS: OnceLock<Vec<Arc<AnswerFormat>>> = OnceLock::new();
    FORMATS.get_or_init(|| {
        let parameters = json!({"properties": {"a": {"type": "string"}, "n": {"type": "integer"}}});
        let tools = ["f", "get"].map(|name| Tool {
            name: name.to_owned(),
            parameters: parameters.clone(),
        });
        let format = |name: &str, thought| {
            let reading = Reading {
                thought,
                is_json: true,
            };
            Arc::new(AnswerFormat::of_model(name, &tools, reading).expect("a format"))
        };
        let names = model_formats().chain(["any"]);
        names
            .flat_map(|name| [Thought::Possible, Thought::Begun].map(|thought| format(name, thought)))
            .collect()
    })
}

/// What events say, whatever the pieces in which they said it.
fn told(format: &Arc<AnswerFormat>, pieces: &[&str]) -> (String, String, Vec<String>, Vec<Event>) {
    let mut events = Events::new(format.clone());
    let mut found: Vec<Event> = pieces.iter().flat_map(|piece| events.push(piece)).collect();
    found.extend(events.finish());
    let (mut reasoning, mut content, mut calls, mut others) = Default::default();
    for event in found {
        match event.kind {
            EventKind::Reasoning(text) => String::push_str(&mut reasoning, &text),
            EventKind::Content(text) => String::push_str(&mut content, &text),
            EventKind::Call(name) => Vec::push(&mut calls, name),
            EventKind::Arguments(text) => {
                if let Some(call) = calls.last_mut() {
                    call.push_str(&text);
                }
            }
            kind => Vec::push(&mut others, Event { kind, ..event }),
        }
    }
    (reasoning, content, calls, others)
}

/// A byte that chooses the format, a byte that chooses the cut, and an answer.
pub fn answers(input: &[u8]) {
    let [format, cut, text @ ..] = input else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    let format = &formats()[usize::from(*format) % formats().len()];
    let mut at = text.len() * usize::from(*cut) / 256;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    within(COMPILE, "reading an answer", || {
        let whole = told(format, &[text]);
        assert_eq!(
            told(format, &[&text[..at], &text[at..]]),
            whole,
            "cut at {at}: {text:?}"
        );
        assert!(whole.0.len() + whole.1.len() <= text.len(), "{text:?}");
    });
}
