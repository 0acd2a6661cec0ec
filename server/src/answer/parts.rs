//! The parts of an output: the thought, the content, and the calls of tools, read by the library's reader of
//! answers in the format of the request.
//!
//! The grammar of the answer ([`crate::grammars::language`]) guarantees that every text has exactly one
//! reading. Streams and whole answers are read by the same code.

pub mod continued;
pub mod judged;

use std::sync::Arc;

use lexiform_engine::Preamble;
use lexiform_syntax::answer::{self, AnswerFormat, AnswerPlace, AnswerReader};

use crate::grammars::language::Language;
use crate::grammars::store::Compiled;
use crate::grammars::thought::Thought;
use crate::wire::tools::{Calls, Input};

pub use lexiform_syntax::answer::Part;

/// How a shortage of tokens affected free text. Under a constraint an answer is completed in time; free text
/// that had to end, or that replaces a call, is shorter than the model would have written it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// The text ended as the model chose.
    #[default]
    Nothing,
    /// The likeliest token of the model was excluded somewhere; it may have been the beginning of a call.
    Diverted,
    /// The text ended because no token was left.
    Ended,
}

/// The format in which the answers of a request are read.
#[derive(Clone, Debug, Default)]
pub struct OutputFormat {
    /// What the reader knows.
    answer: Arc<AnswerFormat>,
    /// How a thought may begin an answer.
    thought: Thought,
    /// The calls that answers may contain.
    pub calls: Option<Calls>,
    /// `true` if the text outside calls and tags is free.
    has_free_text: bool,
    /// The content before the answers, which the prompt ends with.
    begun: String,
}

impl OutputFormat {
    /// Returns the format of answers in this language, and in its grammar if it has one.
    pub fn of(language: &Language, compiled: Option<&Compiled>) -> Self {
        let calls = language.calls.clone();
        let answer = AnswerFormat {
            thought: match language.thought {
                Thought::None | Thought::Refused => answer::Thought::None,
                Thought::Possible | Thought::Required => answer::Thought::Possible,
                Thought::Begun | Thought::Skipped => answer::Thought::Begun,
            },
            marks: language.marks_of_thought(),
            sections: answer::sections(&language.marks),
            frames: language.frames(),
            mode: calls.as_ref().map(|calls| calls.mode).unwrap_or_default(),
            tools: calls.as_ref().map(Calls::names).unwrap_or_default(),
            arguments: compiled
                .map(|compiled| compiled.readers.clone())
                .unwrap_or_default(),
            is_constrained: true,
            is_json: false,
        };
        Self {
            answer: Arc::new(answer),
            thought: language.thought,
            calls,
            has_free_text: language.has_free_text(),
            begun: String::new(),
        }
    }

    /// Returns a reader at the beginning of an answer.
    pub fn reader(&self) -> AnswerReader {
        let mut reader = AnswerReader::new(self.answer.clone());
        if !self.begun.is_empty() {
            // This was read before, and is content alone.
            reader.push(&self.begun);
        }
        reader
    }

    /// Returns the thought as text before an answer; `None` if no answer has one.
    pub fn preamble(&self) -> Option<Preamble> {
        self.thought.preamble(self.answer.marks)
    }

    /// Returns `true` if all of an answer is content.
    fn is_content_alone(&self) -> bool {
        self.thought.is_absent() && self.calls.is_none()
    }

    /// Returns `true` if text of an answer that ends in this place is free and was cut by the shortage of
    /// tokens. Text under a constraint is always whole.
    pub fn is_cut(&self, place: AnswerPlace, cut: Cut) -> bool {
        let is_free = match place {
            AnswerPlace::Reasoning | AnswerPlace::Content => self.has_free_text,
            AnswerPlace::RawInput(tool) => self.is_free_input(tool),
            AnswerPlace::Call => false,
        };
        match cut {
            Cut::Nothing => false,
            // The excluded token may have been the beginning of a call.
            Cut::Diverted => is_free && place == AnswerPlace::Content && self.calls.is_some(),
            Cut::Ended => is_free,
        }
    }

    /// Returns `true` if a tool takes any text.
    fn is_free_input(&self, tool: usize) -> bool {
        let tools = self.calls.as_ref().map_or(&[][..], |calls| &calls.tools);
        tools.get(tool).is_some_and(|tool| tool.input == Input::Raw(None))
    }

    /// Returns the name of a tool, and whether it is a custom tool.
    pub fn tool(&self, place: usize) -> (&str, bool) {
        let tool = self.answer.tools.get(place);
        tool.map_or(("", false), |tool| (tool.name.as_str(), tool.is_raw))
    }
}

/// Returns parts without their places.
pub fn without_places(parts: Vec<answer::Spanned>) -> impl Iterator<Item = Part> {
    parts.into_iter().map(|spanned| spanned.part)
}
