//! The format of answers: what their reader knows of the model and of the request.

use std::sync::Arc;

use super::frames::{Frame, Tool};
use super::sections::{Section, first_marks, sections};
use super::table;
use crate::schema::{ArgumentStyle, Options};
use crate::tags::{self, ArgumentError, ArgumentReader, ThoughtMarks, guessed_arguments};
use lexiform_automata::error::CompileError;
use lexiform_automata::limits::Limits;

/// How an answer may begin with a thought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Thought {
    /// The answer begins without a thought.
    #[default]
    None,
    /// The answer may begin with a thought.
    Possible,
    /// The prompt has already opened the thought.
    Begun,
}

/// Which texts an answer has besides the calls of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallMode {
    /// Any text; the model decides whether it calls a tool.
    #[default]
    Auto,
    /// None: at least one tool is called.
    Required,
    /// The only tool is called, and the answer is its input and nothing else.
    Bare,
}

/// The format in which an answer is read.
#[derive(Clone, Debug, Default)]
pub struct AnswerFormat {
    /// How a thought may begin an answer.
    pub thought: Thought,
    /// The marks of a thought at the beginning.
    pub marks: ThoughtMarks,
    /// The sections of answers behind it, which may occur anywhere.
    pub sections: &'static [Section],
    /// The frames in which calls are written.
    pub frames: &'static [Frame],
    /// The texts besides the calls.
    pub mode: CallMode,
    /// The tools that may be called.
    pub tools: Vec<Tool>,
    /// The readers of the arguments of each tool; `None` for a tool whose input is read as it is.
    pub arguments: Arc<[Option<ArgumentReader>]>,
    /// `true` if a grammar guarantees the frames: a text that ends within one was cut, and what there is of
    /// the frame is not content.
    pub is_constrained: bool,
    /// `true` if the content is one JSON text.
    pub is_json: bool,
}

/// How an answer without a constraint is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// How it may begin with a thought.
    pub thought: Thought,
    /// `true` if its content is one JSON text.
    pub is_json: bool,
}

impl AnswerFormat {
    /// Returns the format of the answers of a model that may call these tools, without a constraint. `name`
    /// is one of [`model_formats`](crate::tags::model_formats), or `any` for a model whose format is not
    /// known, which may write calls in the frame of any family.
    ///
    /// # Errors
    /// Returns an error if there is no format of this name, or if the schema of a tool does not compile and
    /// the style of the format needs it to tell strings from other values.
    pub fn of_model(
        name: &str,
        tools: &[tags::Tool],
        reading: Reading,
    ) -> Result<AnswerFormat, CompileError> {
        let frames = match name {
            "any" => table::FRAMES,
            name => table::relaxed_frames(name).ok_or_else(|| tags::unknown_format(name))?,
        };
        let style = frames.first().map(|frame| frame.style).unwrap_or_default();
        let (options, limits) = (Options::for_generation(), Limits::default());
        let reader = |tool: &tags::Tool| {
            let schema = tool.parameters.to_string();
            match ArgumentReader::new(style, &schema, &options, &limits) {
                Ok(reader) => Ok(Some(reader)),
                Err(ArgumentError::Schema(error)) => Err(error),
                Err(_) => Ok(None),
            }
        };
        let arguments: Result<Arc<[_]>, CompileError> = match style {
            ArgumentStyle::Json => Ok(Arc::default()),
            _ => tools.iter().map(reader).collect(),
        };
        let marks = first_marks(name);
        let named = |tool: &tags::Tool| Tool {
            name: tool.name.clone(),
            is_raw: false,
        };
        Ok(AnswerFormat {
            thought: reading.thought,
            sections: sections(&marks),
            marks,
            frames,
            mode: CallMode::Auto,
            tools: tools.iter().map(named).collect(),
            arguments: arguments?,
            is_constrained: false,
            is_json: reading.is_json,
        })
    }

    /// Returns the arguments that a text in a style writes, as JSON. A text that cannot be read is passed on
    /// as it is.
    pub(super) fn json_arguments(&self, tool: usize, style: ArgumentStyle, text: String) -> String {
        let read = match self.arguments.get(tool) {
            Some(Some(reader)) => reader.read_any(&text),
            _ => guessed_arguments(style, &text),
        };
        read.map_or(text, |arguments| arguments.to_string())
    }
}
