//! Events of an answer: its parts, and the values of the JSON in them.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use super::format::AnswerFormat;
use super::reader::{AnswerReader, Part, Spanned};
use super::values::{JsonEvent, JsonValues};

/// What happens in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// More of the thought.
    Reasoning(String),
    /// More of the content.
    Content(String),
    /// A call of the tool with this name begins.
    Call(String),
    /// More of the arguments of the call, as JSON, or of the input of a custom tool.
    Arguments(String),
    /// The call is complete.
    CallEnd,
    /// An object or an array begins in the JSON of the content or of the arguments.
    Opened {
        /// Its pointer.
        pointer: String,
        /// `true` if it is an object.
        is_object: bool,
    },
    /// A key is complete; the pointer is that of its value.
    Key {
        /// The pointer of the value.
        pointer: String,
    },
    /// A string, a number, `true`, `false` or `null` is complete.
    Value {
        /// The pointer of the value.
        pointer: String,
        /// The value as it is written.
        text: String,
    },
}

/// An event with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happens.
    pub kind: EventKind,
    /// The number of the call, from 0; `None` outside of calls.
    pub call: Option<usize>,
    /// The bytes of the answer. Arguments that are not written as JSON have the bytes of all of them, and so
    /// have the values inside.
    pub span: Range<usize>,
}

impl Event {
    /// Returns the event as JSON, for programs in other languages.
    ///
    /// ```json
    /// {"kind": "value", "call": 0, "span": [41, 42], "pointer": "/days", "text": "3"}
    /// ```
    pub fn to_json(&self) -> Value {
        let [begin, end] = [self.span.start, self.span.end];
        let mut event = json!({"kind": self.kind.name(), "call": self.call, "span": [begin, end]});
        let mut set = |name: &str, value: Value| event[name] = value;
        match &self.kind {
            EventKind::Reasoning(text) | EventKind::Content(text) | EventKind::Arguments(text) => {
                set("text", json!(text));
            }
            EventKind::Call(name) => set("name", json!(name)),
            EventKind::CallEnd => {}
            EventKind::Opened { pointer, is_object } => {
                set("pointer", json!(pointer));
                set("is_object", json!(is_object));
            }
            EventKind::Key { pointer } => set("pointer", json!(pointer)),
            EventKind::Value { pointer, text } => {
                set("pointer", json!(pointer));
                set("text", json!(text));
            }
        }
        event
    }
}

impl EventKind {
    /// Returns the name of the kind: `reasoning`, `content`, `call`, `arguments`, `call_end`, `opened`,
    /// `key` or `value`.
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::Reasoning(_) => "reasoning",
            EventKind::Content(_) => "content",
            EventKind::Call(_) => "call",
            EventKind::Arguments(_) => "arguments",
            EventKind::CallEnd => "call_end",
            EventKind::Opened { .. } => "opened",
            EventKind::Key { .. } => "key",
            EventKind::Value { .. } => "value",
        }
    }
}

/// Reads the events of one answer.
///
/// The events of the JSON in the content come only if the [format](AnswerFormat::is_json) says that it is
/// JSON.
#[derive(Clone, Debug)]
pub struct Events {
    reader: AnswerReader,
    calls: usize,
    is_in_call: bool,
    /// `true` if the content is JSON.
    is_json: bool,
    /// The JSON that is being read, with the place of each piece of it; `None` in text that is not JSON.
    json: Option<(JsonValues, Vec<Piece>)>,
    /// `true` once content has begun.
    has_content: bool,
}

/// A piece of JSON: its offset in the JSON, and its place in the answer.
#[derive(Clone, Debug)]
struct Piece {
    offset: usize,
    span: Range<usize>,
    /// `true` if its bytes are those of the answer.
    is_verbatim: bool,
}

impl Events {
    /// Creates a reader at the beginning of an answer.
    pub fn new(format: Arc<AnswerFormat>) -> Events {
        Events {
            is_json: format.is_json,
            reader: AnswerReader::new(format),
            calls: 0,
            is_in_call: false,
            json: None,
            has_content: false,
        }
    }

    /// Reads more text and returns its events.
    pub fn push(&mut self, text: &str) -> Vec<Event> {
        let parts = self.reader.push(text);
        self.events(parts)
    }

    /// Ends the answer and returns the last events.
    pub fn finish(&mut self) -> Vec<Event> {
        let parts = self.reader.finish();
        let mut events = self.events(parts);
        self.end_json(&mut events);
        events
    }

    fn call(&self) -> Option<usize> {
        self.is_in_call.then_some(self.calls.wrapping_sub(1))
    }

    fn events(&mut self, parts: Vec<Spanned>) -> Vec<Event> {
        let mut events = Vec::new();
        for spanned in parts {
            self.part(spanned, &mut events);
        }
        events
    }

    fn part(&mut self, spanned: Spanned, events: &mut Vec<Event>) {
        let Spanned {
            part,
            span,
            is_verbatim,
        } = spanned;
        match part {
            Part::Reasoning(text) => self.push_event(EventKind::Reasoning(text), span, events),
            Part::Content(text) => {
                if !std::mem::replace(&mut self.has_content, true) && self.is_json {
                    self.json = Some(Default::default());
                }
                self.push_event(EventKind::Content(text.clone()), span.clone(), events);
                self.read_json(&text, span, is_verbatim, events);
            }
            Part::Opened(tool) => {
                self.end_json(events);
                (self.calls, self.is_in_call) = (self.calls + 1, true);
                let (name, is_raw) = self.reader.tool(tool);
                let name = name.to_owned();
                self.json = (!is_raw).then(Default::default);
                self.push_event(EventKind::Call(name), span, events);
            }
            Part::Input(text) => {
                self.push_event(EventKind::Arguments(text.clone()), span.clone(), events);
                self.read_json(&text, span, is_verbatim, events);
            }
            Part::Closed => {
                self.end_json(events);
                self.push_event(EventKind::CallEnd, span, events);
                self.is_in_call = false;
            }
        }
    }

    fn push_event(&self, kind: EventKind, span: Range<usize>, events: &mut Vec<Event>) {
        let call = self.call();
        events.push(Event { kind, call, span });
    }

    fn read_json(&mut self, text: &str, span: Range<usize>, is_verbatim: bool, events: &mut Vec<Event>) {
        let Some((values, pieces)) = &mut self.json else {
            return;
        };
        let offset = values.text().len();
        match pieces.last_mut() {
            Some(last) if last.is_verbatim && is_verbatim && last.span.end == span.start => {
                last.span.end = span.end;
            }
            _ => pieces.push(Piece {
                offset,
                span,
                is_verbatim,
            }),
        }
        let found = values.push(text);
        self.json_events(found, events);
    }

    fn end_json(&mut self, events: &mut Vec<Event>) {
        if let Some((values, _)) = &mut self.json {
            let found = values.finish();
            self.json_events(found, events);
        }
        self.json = None;
    }

    fn json_events(&self, found: Vec<JsonEvent>, events: &mut Vec<Event>) {
        let Some((values, pieces)) = &self.json else {
            return;
        };
        for event in found {
            let (kind, bytes) = match event {
                JsonEvent::Opened(pointer, is_object, at) => {
                    (EventKind::Opened { pointer, is_object }, at..at + 1)
                }
                JsonEvent::Key(pointer, bytes) => (EventKind::Key { pointer }, bytes),
                JsonEvent::Whole(pointer, bytes) => {
                    let text = values.text()[bytes.clone()].to_owned();
                    (EventKind::Value { pointer, text }, bytes)
                }
            };
            let span = place(pieces, &bytes);
            self.push_event(kind, span, events);
        }
    }
}

/// Returns the place of bytes of a JSON text in the answer.
fn place(pieces: &[Piece], bytes: &Range<usize>) -> Range<usize> {
    let of = |offset: usize| {
        let at = pieces.partition_point(|piece| piece.offset <= offset);
        &pieces[at.saturating_sub(1)]
    };
    let (first, last) = (of(bytes.start), of(bytes.end.saturating_sub(1)));
    let begin = match first.is_verbatim {
        true => first.span.start + (bytes.start - first.offset),
        false => first.span.start,
    };
    let end = match last.is_verbatim {
        true => last.span.start + (bytes.end - last.offset),
        false => last.span.end,
    };
    begin..end
}

#[cfg(test)]
mod tests {
    use super::super::{Reading, Thought};
    use super::*;
    use crate::tags;

    fn format(name: &str, is_json: bool) -> Arc<AnswerFormat> {
        let tool = tags::Tool {
            name: "f".to_owned(),
            parameters: serde_json::json!({}),
        };
        let reading = Reading {
            thought: Thought::Possible,
            is_json,
        };
        Arc::new(AnswerFormat::of_model(name, &[tool], reading).expect("a format"))
    }

    /// Reads a text in pieces; returns each event but text, with the bytes at its place.
    fn told(format: &Arc<AnswerFormat>, pieces: &[&str]) -> Vec<(EventKind, Option<usize>, String)> {
        let text = pieces.concat();
        let mut events = Events::new(format.clone());
        let mut found: Vec<Event> = pieces.iter().flat_map(|piece| events.push(piece)).collect();
        found.extend(events.finish());
        let is_text = |event: &Event| {
            let kind = &event.kind;
            matches!(
                kind,
                EventKind::Reasoning(_) | EventKind::Content(_) | EventKind::Arguments(_)
            )
        };
        let others = found.into_iter().filter(|event| !is_text(event));
        let shown = others.map(|event| (event.kind, event.call, text[event.span].to_owned()));
        shown.collect()
    }

    #[test]
    fn values_have_their_places_in_the_answer_however_it_is_cut() {
        let text = "<think>{</think>\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"é\"]}}\n</tool_call>";
        let value = |pointer: &str, text: &str| {
            let kind = EventKind::Value {
                pointer: pointer.to_owned(),
                text: text.to_owned(),
            };
            (kind, Some(0), text.to_owned())
        };
        let opened = |pointer: &str, is_object, bracket: &str| {
            let pointer = pointer.to_owned();
            (
                EventKind::Opened { pointer, is_object },
                Some(0),
                bracket.to_owned(),
            )
        };
        let key = EventKind::Key {
            pointer: "/a".to_owned(),
        };
        let expected = [
            (EventKind::Call("f".to_owned()), Some(0), "f".to_owned()),
            opened("", true, "{"),
            (key, Some(0), "\"a\"".to_owned()),
            opened("/a", false, "["),
            value("/a/0", "1"),
            value("/a/1", "\"é\""),
            (EventKind::CallEnd, Some(0), "}\n</tool_call>".to_owned()),
        ];
        let format = format("qwen_3", false);
        for (cut, _) in text.char_indices() {
            assert_eq!(told(&format, &[&text[..cut], &text[cut..]]), expected, "{cut}");
        }
    }

    #[test]
    fn content_that_is_json_has_values_and_made_arguments_have_the_place_of_all() {
        let value = |pointer: &str, text: &str| EventKind::Value {
            pointer: pointer.to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(
            told(&format("qwen_3", true), &[" 4", "2 "]),
            [(value("", "42"), None, "42".to_owned())]
        );
        assert_eq!(told(&format("qwen_3", false), &["[1]"]), []);
        let call = "<function=g><parameter=a>1</parameter></function>";
        let found = told(&format("qwen_3_coder", false), &[call]);
        let arguments = "<parameter=a>1</parameter>".to_owned();
        assert!(
            found.contains(&(value("/a", "1"), Some(0), arguments)),
            "{found:?}"
        );
    }
}
