//! A prompt with its only right answer, and what it is an example of.

use crate::prompt::Prompt;
use serde_json::Value;

/// What a sample teaches, and what is measured apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text, and a schema for what it says.
    Extraction,
    /// A text, and one tool that takes what it says.
    Output,
    /// A wish, several tools, and a choice whether to call any.
    Auto,
    /// The result of a tool, to be told or to be used.
    Result,
    /// A text, and keys that the prompt names.
    Keys,
    /// A text, and a JSON Schema that stands in the prompt.
    Prompted,
    /// Several turns before the last.
    Turns,
    /// Words that want a sentence.
    Talk,
}

impl Kind {
    /// Every kind.
    pub(crate) const ALL: [Self; 8] = [
        Self::Extraction,
        Self::Output,
        Self::Auto,
        Self::Result,
        Self::Keys,
        Self::Prompted,
        Self::Turns,
        Self::Talk,
    ];

    /// Its name in reports and files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Extraction => "extraction",
            Self::Output => "output",
            Self::Auto => "auto",
            Self::Result => "result",
            Self::Keys => "keys",
            Self::Prompted => "prompted",
            Self::Turns => "turns",
            Self::Talk => "talk",
        }
    }
}

/// A prompt and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// What it is an example of.
    pub(crate) kind: Kind,
    /// What the model reads.
    pub(crate) prompt: Prompt,
    /// The JSON Schema of the answer; `None` where the answer is free, or a call.
    pub(crate) schema: Option<Value>,
    /// The answer, as the model writes it.
    pub(crate) answer: String,
}
