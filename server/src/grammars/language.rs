//! The language of a whole answer: a thought, then text that obeys a constraint, or calls of tools.
//!
//! ```text
//!   answer   ::= thought? ( content | text calls | calls )
//!   thought  ::= "<think>" … "</think>"                              only for models that have these tokens
//!   calls    ::= call ("\n" call)*                                   one call alone, if they may not be parallel
//!   call     ::= "<tool_call>\n" {"name": "f", "arguments": ARGUMENTS} "\n</tool_call>"
//!              | "<tool_call>\n" {"name": "sql"} "\n" INPUT          the input of a custom tool ends the answer
//! ```
//!
//! This frame of a call is the one that Hermes introduced and Qwen's models were trained on. In free text,
//! calls may also stand in the frames of other families ([`frames`](super::frames)). Every part of a frame is
//! in the grammar, so a call can be neither malformed nor of an unknown tool. A custom tool's input is raw
//! text that may hold anything, the closing mark too; it ends with the answer, so that no text has two
//! readings.

use lexiform::error::{CompileError, Problem, ProblemKind};
use sha2::{Digest as _, Sha256};

use crate::grammars::frames::{FRAME_MARKS, FRAMES, Frame};
use crate::operate::metrics::GrammarKind;
use crate::wire::constraint::{Constraint, Form, Source};
use crate::wire::tools::{Calls, Mode};

/// Opens a thought.
pub const THINK: &str = "<think>";
/// Closes a thought.
pub const END_THINK: &str = "</think>";

/// Whether an answer begins with a thought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Thought {
    /// It does not.
    #[default]
    None,
    /// It may.
    Possible,
    /// The prompt has opened it already.
    Begun,
}

/// The language of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Language {
    /// What comes first.
    pub thought: Thought,
    /// What the text obeys; without it, the text is free.
    pub content: Option<Constraint>,
    /// The calls.
    pub calls: Option<Calls>,
    /// Bytes that stand before all of it: what was removed from a prompt that was healed.
    pub prefix: Vec<u8>,
}

/// A constraint that does not compile.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The constraint.
    pub constraint: Constraint,
    /// All its problems.
    pub error: CompileError,
}

impl Rejected {
    /// Whether nothing is wrong with it, but nobody wanted to know any more.
    pub fn is_called_off(&self) -> bool {
        let mut problems = self.error.problems.iter();
        problems.any(|problem| problem.kind == ProblemKind::Cancelled)
    }
}

/// Something noteworthy about a constraint that compiles.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The place of the constraint among [`Language::constraints`]: where it came from may differ from
    /// request to request, though the grammar is the same.
    pub constraint: usize,
    /// What was found.
    pub problem: Problem,
}

/// Whether a text of this form may end in free text.
fn ends_freely(form: &Form) -> bool {
    match form {
        Form::Any { .. } | Form::Triggered { .. } => true,
        Form::Sequence(forms) => forms.last().is_some_and(ends_freely),
        Form::Choice(forms) => forms.iter().any(ends_freely),
        Form::Repeat { form, .. } => ends_freely(form),
        Form::Text(_) | Form::Token(_) | Form::Content(_) | Form::Tag(_) | Form::Separated { .. } => false,
    }
}

/// Whether this is the name of a token that marks a part of an answer.
pub fn is_mark(name: &[u8]) -> bool {
    let marks = [THINK, END_THINK].into_iter().chain(FRAME_MARKS);
    marks.into_iter().any(|mark| mark.as_bytes() == name)
}

impl Language {
    /// The frames in which its calls may be written: all of them behind free text; where an answer must be a
    /// call, or its text obeys a constraint, with which some could be confused, the first alone.
    pub fn frames(&self) -> &'static [Frame] {
        match &self.calls {
            Some(calls) if calls.mode == Mode::Auto && self.content.is_none() => FRAMES,
            Some(_) => &FRAMES[..1],
            None => &[],
        }
    }

    /// Whether it may end in free text, beside its calls and tags: such a text may end anywhere.
    pub fn has_free_text(&self) -> bool {
        match self.content.as_ref().map(|content| &content.source) {
            None => self.calls.as_ref().is_none_or(|calls| calls.mode == Mode::Auto),
            Some(Source::Tags(form)) => ends_freely(form),
            Some(_) => false,
        }
    }

    /// Whether everything is in it, so that no grammar is needed.
    pub fn is_free(&self) -> bool {
        self.content.is_none() && self.calls.is_none() && self.prefix.is_empty()
    }

    /// Whether its content may hold marks that are no text to the model, and are to the client.
    pub fn shows_marks(&self) -> bool {
        let content = self.content.as_ref();
        content.is_some_and(|content| matches!(content.source, Source::Tags(_)))
    }

    /// Its identity: the same for the same language, in every process.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        let calls = self.calls.as_ref();
        let shape = calls.map(|calls| (calls.mode, calls.parallel));
        hash.update(format!(
            "{:?}\0{:?}\0{}",
            self.thought,
            shape,
            self.content.is_some()
        ));
        for tool in calls.iter().flat_map(|calls| &calls.tools) {
            hash.update(format!("{:?}\0{}\0", tool.name, tool.is_custom()));
        }
        if !self.prefix.is_empty() {
            hash.update(format!("{:?}\0", self.prefix));
        }
        for constraint in self.constraints() {
            hash.update(format!(
                "{:?}\0{:?}\0{:?}\0",
                constraint.whitespace, constraint.key_order, constraint.dialect
            ));
            hash.update(format!(
                "{:?}\0{:?}\0",
                constraint.additional_properties, constraint.numbers
            ));
            hash.update(format!("{:?}\0", constraint.source));
        }
        let digest = hash.finalize();
        let hex = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
        format!("gr_{}", hex.collect::<String>())
    }

    /// What it is mostly made of.
    pub fn kind(&self) -> GrammarKind {
        match self.content.as_ref().map(|content| &content.source) {
            _ if self.calls.is_some() => GrammarKind::Tools,
            Some(Source::Schema(_)) => GrammarKind::Schema,
            Some(Source::Ebnf(_)) => GrammarKind::Ebnf,
            Some(Source::Choice(_) | Source::Extract(..)) => GrammarKind::Choice,
            Some(Source::Tags(_)) => GrammarKind::Tags,
            // Without a constraint a language is compiled only for its prefix.
            Some(Source::Regex(_)) | None => GrammarKind::Regex,
        }
    }

    /// The bytes of its sources, for estimates.
    pub fn source_bytes(&self) -> usize {
        let lengths = self
            .constraints()
            .map(|constraint| constraint.source.bytes() + 64);
        lengths.sum()
    }

    /// All constraints in it.
    pub fn constraints(&self) -> impl Iterator<Item = &Constraint> {
        let tools = self.calls.iter().flat_map(|calls| &calls.tools);
        let inputs = tools.filter_map(|tool| tool.input.constraint());
        self.content.iter().chain(inputs)
    }

    /// The constraint that is named when the whole does not compile, though its parts do.
    pub fn blamed(&self) -> Constraint {
        let first = self.constraints().next().cloned();
        first.unwrap_or_else(|| Constraint::new(Source::Regex(String::new()), "tools"))
    }
}
