//! The language of a whole answer: a thought, then text under a constraint, or calls of tools.
//!
//! ```text
//!   answer   ::= thought? ( content | text calls | calls )
//!   thought  ::= "<think>" … "</think>"                              the marks of the model, if it has their tokens
//!              | "<think>" …                                         before calls, in formats whose models leave it open
//!   calls    ::= call ("\n" call)*                                   one call alone, if they may not be parallel
//!   call     ::= "<tool_call>\n" {"name": "f", "arguments": ARGUMENTS} "\n</tool_call>"
//!              | "<tool_call>\n" {"name": "sql"} "\n" INPUT          the input of a custom tool ends the answer
//! ```
//!
//! This frame of a call is the one that Hermes introduced and Qwen's models were trained on. In free text,
//! calls may also be written in the frames of other families ([`lexiform_syntax::answer`]). If the format of
//! the model is known ([`tool_format`](super::tool_format)), its frame is the only one. Every part of a frame
//! is in the grammar, so a call can be neither malformed nor of an unknown tool. A custom tool's input is raw
//! text that may contain anything, including the closing mark; it ends with the answer, so that no text has
//! two readings.

use lexiform::error::{CompileError, Problem, ProblemKind};
use lexiform::schema::ArgumentStyle;
use lexiform_syntax::answer::{FRAME_MARKS, FRAMES, Frame};
use lexiform_syntax::tags::ThoughtMarks;
use sha2::{Digest as _, Sha256};

use crate::grammars::thought::Thought;
use crate::grammars::tool_format::ToolFormat;
use crate::operate::metrics::GrammarKind;
use crate::wire::constraint::{Constraint, Form, Source};
use crate::wire::tools::{Calls, Mode};

/// The language of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Language {
    /// The thought at the beginning.
    pub thought: Thought,
    /// The marks of the thought.
    pub marks: ThoughtMarks,
    /// The constraint on the text; without it, the text is free.
    pub content: Option<Constraint>,
    /// The calls that an answer may contain.
    pub calls: Option<Calls>,
    /// The format in which the calls are written.
    pub tool_format: ToolFormat,
    /// The bytes before all of it: the text that was removed from a healed prompt.
    pub prefix: Vec<u8>,
}

/// A constraint that does not compile.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The constraint.
    pub constraint: Constraint,
    /// All problems of the constraint.
    pub error: CompileError,
}

impl Rejected {
    /// Returns `true` if there is no problem with the constraint, but its compilation was cancelled.
    pub fn is_called_off(&self) -> bool {
        let mut problems = self.error.problems.iter();
        problems.any(|problem| problem.kind == ProblemKind::Cancelled)
    }
}

/// Something noteworthy about a constraint that compiles.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The index of the constraint in [`Language::constraints`]: the request field that it came from may
    /// differ from request to request, though the grammar is the same.
    pub constraint: usize,
    /// The problem that was found.
    pub problem: Problem,
}

fn kind(source: &Source) -> GrammarKind {
    match source {
        Source::Schema(_) => GrammarKind::Schema,
        Source::Regex(_) => GrammarKind::Regex,
        Source::Grammar(..) => GrammarKind::Ebnf,
        Source::Choice(_) | Source::Extract(..) => GrammarKind::Choice,
        Source::Tags(_) => GrammarKind::Tags,
    }
}

/// Returns `true` if a text of this form may end in free text.
fn ends_freely(form: &Form) -> bool {
    match form {
        Form::Any { .. } | Form::AnyToken { .. } | Form::Triggered { .. } | Form::TokenTriggered { .. } => {
            true
        }
        Form::Sequence(forms) => forms.last().is_some_and(ends_freely),
        Form::Choice(forms) => forms.iter().any(ends_freely),
        Form::Repeat { form, .. } => ends_freely(form),
        Form::Text(_) | Form::Token(_) | Form::Content(_) | Form::Tag(_) | Form::Separated { .. } => false,
    }
}

/// Returns `true` if this is the name of a token that marks a part of an answer.
pub fn is_mark(name: &[u8]) -> bool {
    let ThoughtMarks { open, ends } = ThoughtMarks::default();
    let mut marks = [open].into_iter().chain(ends.iter().copied()).chain(FRAME_MARKS);
    marks.any(|mark| mark.as_bytes() == name)
}

impl Language {
    /// Returns the frames in which calls may be written: those of the format of the model. Without a format,
    /// it is all of them after free text, and only the first if an answer must be a call, or if its text is
    /// under a constraint, which could be confused with some of them. A format in plain JSON is one of them
    /// all, so beside text it is like no format.
    pub fn frames(&self) -> &'static [Frame] {
        let Some(calls) = &self.calls else {
            return &[];
        };
        let has_text = calls.mode == Mode::Auto;
        let frames = self.tool_format.frames();
        let is_plain = frames.iter().any(|frame| frame.mark().is_none());
        match (&self.content, has_text) {
            _ if !frames.is_empty() && (!has_text || !is_plain) => frames,
            (None, true) => FRAMES,
            _ => &FRAMES[..1],
        }
    }

    /// Returns `true` if an answer may end in free text, outside its calls and tags: such a text may end
    /// anywhere.
    pub fn has_free_text(&self) -> bool {
        match self.content.as_ref().map(|content| &content.source) {
            None => self.calls.as_ref().is_none_or(|calls| calls.mode == Mode::Auto),
            Some(Source::Tags(form)) => ends_freely(form),
            Some(_) => false,
        }
    }

    /// Returns the marks of its thought: with that of a call only if it has calls in the frame of the format.
    pub fn marks_of_thought(&self) -> ThoughtMarks {
        match &self.calls {
            Some(calls) if calls.mode != Mode::Bare && self.tool_format != ToolFormat::Any => self.marks,
            _ => self.marks.without_calls(),
        }
    }

    /// Returns `true` if it constrains nothing behind its thought, so that the model may write it without a
    /// grammar, unless the thought is [imposed](Thought::is_imposed) or limited.
    pub fn is_free(&self) -> bool {
        self.content.is_none() && self.calls.is_none() && self.prefix.is_empty()
    }

    /// Returns `true` if it may contain marks that are not text to the model, but are to the client or to the
    /// reader of calls.
    pub fn shows_marks(&self) -> bool {
        let content = self.content.as_ref();
        let is_framed = self.calls.is_some() && self.tool_format != ToolFormat::Any;
        is_framed || content.is_some_and(|content| matches!(content.source, Source::Tags(_)))
    }

    /// Returns the identity of the language: equal for equal languages, in every process.
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
        if !self.thought.is_absent() && self.marks != ThoughtMarks::default() {
            hash.update(format!("{:?}\0", self.marks));
        }
        for tool in calls.iter().flat_map(|calls| &calls.tools) {
            hash.update(format!("{:?}\0{}\0", tool.name, tool.is_custom()));
        }
        if let ToolFormat::Of(format) = self.tool_format {
            hash.update(format!("{format:?}\0"));
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
            if constraint.arguments != ArgumentStyle::Json {
                hash.update(format!("{:?}\0", constraint.arguments));
            }
            if !constraint.excludes.is_empty() {
                hash.update(format!("{:?}\0", constraint.excludes));
            }
            hash.update(format!("{:?}\0", constraint.source));
        }
        let digest = hash.finalize();
        let hex = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
        format!("gr_{}", hex.collect::<String>())
    }

    /// Returns the kind of constraint that makes up most of the language.
    pub fn kind(&self) -> GrammarKind {
        match &self.content {
            _ if self.calls.is_some() => GrammarKind::Tools,
            Some(content) => kind(&content.source),
            // Without a constraint, a language is compiled only for its prefix.
            None => GrammarKind::Regex,
        }
    }

    /// Returns the kinds of its constraints, each with the field of the request that it came from.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, GrammarKind)> {
        let content = self.content.as_ref();
        let content = content.map(|content| (content.param.as_str(), kind(&content.source)));
        let calls = self.calls.as_ref().map(|_| ("tools", GrammarKind::Tools));
        content.into_iter().chain(calls)
    }

    /// Returns the number of bytes of its sources, for estimates.
    pub fn source_bytes(&self) -> usize {
        let lengths = self
            .constraints()
            .map(|constraint| constraint.source.bytes() + 64);
        lengths.sum()
    }

    /// Returns all constraints of the language.
    pub fn constraints(&self) -> impl Iterator<Item = &Constraint> {
        let tools = self.calls.iter().flat_map(|calls| &calls.tools);
        let inputs = tools.filter_map(|tool| tool.input.constraint());
        self.content.iter().chain(inputs)
    }

    /// Returns the constraint to name when the whole does not compile, though its parts do.
    pub fn blamed(&self) -> Constraint {
        let first = self.constraints().next().cloned();
        first.unwrap_or_else(|| Constraint::new(Source::Regex(String::new()), "tools"))
    }
}
