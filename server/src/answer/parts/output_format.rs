//! The format of answers: what their reader must know of the request.

use std::sync::Arc;

use lexiform::tags::ArgumentReader;
use lexiform_syntax::tags::ThoughtMarks;

use crate::grammars::frames::Frame;
use crate::grammars::language::Language;
use crate::grammars::store::Compiled;
use crate::grammars::thought::Thought;
use crate::wire::tools::{Callable, Calls, Input, Mode};

/// The format in which the answers of a request are read.
#[derive(Clone, Debug, Default)]
pub struct OutputFormat {
    /// How a thought may begin an answer.
    pub thought: Thought,
    /// The marks of the thought.
    pub marks: ThoughtMarks,
    /// The calls that answers may contain.
    pub calls: Option<Calls>,
    /// The frames in which calls are written.
    pub frames: &'static [Frame],
    /// The readers of the arguments of each tool; `None` for a tool whose input is read as it is.
    pub readers: Arc<[Option<ArgumentReader>]>,
    /// `true` if the text outside calls and tags is free.
    pub has_free_text: bool,
    /// The content before the answers, which the prompt ends with.
    pub(super) begun: String,
}

impl OutputFormat {
    /// Returns the format of answers in this language, and in its grammar if it has one.
    pub fn of(language: &Language, compiled: Option<&Compiled>) -> Self {
        Self {
            readers: compiled
                .map(|compiled| compiled.readers.clone())
                .unwrap_or_default(),
            thought: language.thought,
            marks: language.marks_of_thought(),
            calls: language.calls.clone(),
            frames: language.frames(),
            has_free_text: language.has_free_text(),
            begun: String::new(),
        }
    }

    /// Returns `true` if a tool takes any text.
    pub(super) fn is_free_input(&self, tool: usize) -> bool {
        let tool = self.tools().get(tool);
        tool.is_some_and(|tool| tool.input == Input::Raw(None))
    }

    /// Returns `true` if an answer has nothing but calls.
    pub(super) fn is_calls_alone(&self) -> bool {
        self.calls
            .as_ref()
            .is_some_and(|calls| calls.mode == Mode::Required)
    }

    /// Returns the arguments of a tool as JSON. A text that is not what the grammar allows, such as one that
    /// was cut, is passed on as it is.
    pub(super) fn arguments(&self, tool: usize, text: String) -> String {
        match self.readers.get(tool) {
            Some(Some(reader)) => match reader.read(&text) {
                Ok(arguments) => arguments.to_string(),
                Err(error) => {
                    tracing::warn!("the arguments of a call cannot be read: {error}");
                    text
                }
            },
            _ => text,
        }
    }

    pub(super) fn tools(&self) -> &[Callable] {
        self.calls.as_ref().map_or(&[], |calls| &calls.tools)
    }

    /// Returns the name of a tool, and whether it is a custom tool.
    pub fn tool(&self, place: usize) -> (&str, bool) {
        let tool = self.calls.as_ref().and_then(|calls| calls.tools.get(place));
        tool.map_or(("", false), |tool| (tool.name.as_str(), tool.is_custom()))
    }
}
