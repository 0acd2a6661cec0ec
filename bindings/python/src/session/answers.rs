//! Readers of answers. `lexiform/answers.py` is the interface.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lexiform::answers::{AnswerFormat, Event as LibraryEvent, EventKind, Events, Reading, Thought};
use lexiform::vocab::TextStream;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::compiler::model_tags::tools_of;
use crate::error::compile_error;

/// Something that happens in an answer, with its place.
#[pyclass(frozen, get_all, eq, module = "lexiform.answers")]
#[derive(Clone, PartialEq)]
pub(crate) struct Event {
    /// "reasoning", "content", "call", "arguments", "call_end", "opened", "key" or "value".
    kind: &'static str,
    /// The number of the call, from 0; `None` outside of calls.
    call: Option<usize>,
    /// The text, the name of the tool, or the value as it is written.
    text: String,
    /// The JSON pointer of the value; `None` for other kinds.
    pointer: Option<String>,
    /// `True` for an object that begins.
    is_object: bool,
    /// The characters of the answer: the first, and the one after the last.
    span: (usize, usize),
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        let pointer = self.pointer.as_ref();
        let pointer = pointer.map_or(String::new(), |pointer| format!(" at {pointer:?}"));
        format!("<Event {}{pointer} {:?}>", self.kind, self.text)
    }
}

/// What a reader has read.
struct Read {
    events: Events,
    text: TextStream,
    /// The number of tokens of a session that were read.
    tokens: usize,
    /// The number of bytes, and those that continue a character.
    bytes: usize,
    continuing: Vec<usize>,
    is_ended: bool,
}

/// Reads the events of one answer.
#[pyclass(frozen, module = "lexiform._lexiform")]
pub(crate) struct RawReader {
    read: Mutex<Read>,
}

#[pymethods]
impl RawReader {
    /// Creates a reader of answers in a format. `tools` are names with the JSON of their schemas; `thought`
    /// is "none", "possible" or "begun". Without `calls`, calls are content.
    #[new]
    fn new(
        format: &str,
        tools: Vec<(String, String)>,
        thought: &str,
        json: bool,
        calls: bool,
    ) -> PyResult<RawReader> {
        let tools = tools_of(tools)?;
        let reading = Reading {
            thought: match thought {
                "none" => Thought::None,
                "possible" => Thought::Possible,
                "begun" => Thought::Begun,
                other => {
                    let message = format!("thought={other:?} is not \"none\", \"possible\" or \"begun\"");
                    return Err(PyValueError::new_err(message));
                }
            },
            is_json: json,
        };
        let mut format =
            AnswerFormat::of_model(format, &tools, reading).map_err(|error| compile_error(&error))?;
        if !calls {
            format.frames = &[];
        }
        Ok(RawReader {
            read: Mutex::new(Read {
                events: Events::new(Arc::new(format)),
                text: TextStream::default(),
                tokens: 0,
                bytes: 0,
                continuing: Vec::new(),
                is_ended: false,
            }),
        })
    }

    /// Reads more text.
    fn push(&self, text: &str) -> PyResult<Vec<Event>> {
        let mut read = self.lock();
        read.check_open()?;
        Ok(read.push(text))
    }

    /// Ends the answer.
    fn finish(&self) -> Vec<Event> {
        self.lock().finish()
    }
}

impl RawReader {
    fn lock(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the tokens of a session that are new to the reader, and its end. `bytes` returns those of a
    /// token.
    pub(super) fn follow<'b>(
        &self,
        tokens: &[u32],
        bytes: impl Fn(u32) -> &'b [u8],
        is_ended: bool,
    ) -> PyResult<Vec<Event>> {
        let mut read = self.lock();
        let Some(new) = tokens.get(read.tokens..) else {
            let message = format!(
                "the reader has read {} tokens, and the session was rolled back to {}",
                read.tokens,
                tokens.len()
            );
            return Err(PyValueError::new_err(message));
        };
        if read.is_ended {
            return Ok(Vec::new());
        }
        let text: String = new.iter().map(|&token| read.text.push(bytes(token))).collect();
        read.tokens = tokens.len();
        let mut events = read.push(&text);
        if is_ended {
            let rest = read.text.finish();
            events.extend(read.push(&rest));
            events.extend(read.finish());
        }
        Ok(events)
    }
}

impl Read {
    fn check_open(&self) -> PyResult<()> {
        match self.is_ended {
            true => Err(PyValueError::new_err("the answer has ended")),
            false => Ok(()),
        }
    }

    fn push(&mut self, text: &str) -> Vec<Event> {
        let bytes = text.bytes().enumerate();
        let continuing = bytes.filter(|(_, byte)| byte & 0xC0 == 0x80);
        let before = self.bytes;
        self.continuing.extend(continuing.map(|(at, _)| before + at));
        self.bytes += text.len();
        let events = self.events.push(text);
        self.told(events)
    }

    fn finish(&mut self) -> Vec<Event> {
        if std::mem::replace(&mut self.is_ended, true) {
            return Vec::new();
        }
        let events = self.events.finish();
        self.told(events)
    }

    /// Returns the index of the character that begins at a byte.
    fn character(&self, byte: usize) -> usize {
        byte - self.continuing.partition_point(|&at| at < byte)
    }

    fn told(&self, events: Vec<LibraryEvent>) -> Vec<Event> {
        let told = |event: LibraryEvent| {
            let kind = event.kind.name();
            let (text, pointer, is_object) = match event.kind {
                EventKind::Reasoning(text) | EventKind::Content(text) | EventKind::Arguments(text) => {
                    (text, None, false)
                }
                EventKind::Call(name) => (name, None, false),
                EventKind::CallEnd => (String::new(), None, false),
                EventKind::Opened { pointer, is_object } => (String::new(), Some(pointer), is_object),
                EventKind::Key { pointer } => (String::new(), Some(pointer), false),
                EventKind::Value { pointer, text } => (text, Some(pointer), false),
            };
            Event {
                kind,
                call: event.call,
                text,
                pointer,
                is_object,
                span: (self.character(event.span.start), self.character(event.span.end)),
            }
        };
        events.into_iter().map(told).collect()
    }
}
