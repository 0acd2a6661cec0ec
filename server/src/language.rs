//! What a whole answer may be: a thought, then text that obeys a constraint, or calls of tools.
//!
//! ```text
//!   answer   ::= thought? ( content | text calls | calls )
//!   thought  ::= "<think>" … "</think>"                              only for models that have these tokens
//!   calls    ::= call ("\n" call)*                                   one call alone, if they may not be parallel
//!   call     ::= "<tool_call>\n" {"name": "f", "arguments": ARGUMENTS} "\n</tool_call>"
//!              | "<tool_call>\n" {"name": "sql"} "\n" INPUT          the input of a custom tool ends the answer
//! ```
//!
//! The frame of a call is the one that Hermes introduced and Qwen's models were trained on; every part of it is in the
//! grammar, so a call can be neither malformed nor of an unknown tool. A custom tool's input is raw text that may hold
//! anything, the closing mark too; it ends with the answer, so that no text has two readings.

mod tags;

use lexiform::error::{CompileError, Diagnostics, Place, Problem, ProblemKind};
use lexiform::grammar::{Cfg, CfgBuilder, ExprId, Part, Regular};
use lexiform::limits::Limits;
use lexiform::vocab::Vocabulary;
use lexiform::{regex, schema, syntax};

use sha2::{Digest as _, Sha256};

use crate::wire::constraint::{Constraint, KeyOrder, Source, Whitespace};

/// Opens a thought.
pub const THINK: &str = "<think>";
/// Closes a thought.
pub const END_THINK: &str = "</think>";
/// Opens a call.
pub const CALL: &str = "<tool_call>";
/// Closes a call.
pub const END_CALL: &str = "</tool_call>";
/// All of them.
pub const MARKS: [&str; 4] = [THINK, END_THINK, CALL, END_CALL];
/// Stands between the arguments and the closing mark.
const CLOSE: &str = "}\n";
/// The most calls of one answer.
const CALLS: u32 = 32;

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

/// What a tool is called with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// JSON that obeys a schema.
    Arguments(Constraint),
    /// Raw text, constrained or free.
    Raw(Option<Constraint>),
}

impl Input {
    /// What it obeys, unless it is free.
    pub fn constraint(&self) -> Option<&Constraint> {
        match self {
            Input::Arguments(constraint) => Some(constraint),
            Input::Raw(constraint) => constraint.as_ref(),
        }
    }
}

/// A tool that may be called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Callable {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub input: Input,
}

impl Callable {
    /// What stands before the input, from the opening mark on.
    pub fn head(&self) -> String {
        let name = serde_json::Value::from(self.name.as_str());
        match self.input {
            Input::Arguments(_) => format!("{CALL}\n{{\"name\": {name}, \"arguments\": "),
            Input::Raw(_) => format!("{CALL}\n{{\"name\": {name}}}\n"),
        }
    }

    /// What stands behind the input.
    pub fn tail(&self) -> String {
        match self.input {
            Input::Arguments(_) => format!("{CLOSE}{END_CALL}"),
            Input::Raw(_) => String::new(),
        }
    }

    /// Whether it is a custom tool.
    pub fn is_custom(&self) -> bool {
        matches!(self.input, Input::Raw(_))
    }
}

/// When tools are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// If the model wants to.
    Auto,
    /// At least one.
    Required,
    /// The only tool of the list, and the answer is its input and nothing else.
    Bare,
}

/// The calls that an answer may hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Calls {
    /// The tools.
    pub tools: Vec<Callable>,
    /// When they are called.
    pub mode: Mode,
    /// Whether there may be several calls.
    pub parallel: bool,
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
}

/// What a language is mostly made of, for those who measure compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A JSON Schema.
    Schema,
    /// A regular expression.
    Regex,
    /// A grammar.
    Ebnf,
    /// A list of texts.
    Choice,
    /// Calls of tools, with whatever they take.
    Tools,
    /// Structural tags.
    Tags,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::Schema,
        Kind::Regex,
        Kind::Ebnf,
        Kind::Choice,
        Kind::Tools,
        Kind::Tags,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Schema => "json_schema",
            Kind::Regex => "regex",
            Kind::Ebnf => "ebnf",
            Kind::Choice => "choice",
            Kind::Tools => "tools",
            Kind::Tags => "structural_tag",
        }
    }
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
    /// The place of the constraint among [`Language::constraints`]: where it came from may differ from request to
    /// request, though the grammar is the same.
    pub constraint: usize,
    /// What was found.
    pub problem: Problem,
}

impl Language {
    /// Whether everything is in it, so that no grammar is needed.
    pub fn is_free(&self) -> bool {
        self.content.is_none() && self.calls.is_none()
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
        for constraint in self.constraints() {
            hash.update(format!(
                "{:?}\0{:?}\0",
                constraint.whitespace, constraint.key_order
            ));
            hash.update(format!("{:?}\0", constraint.source));
        }
        let digest = hash.finalize();
        let hex = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
        format!("gr_{}", hex.collect::<String>())
    }

    /// What it is mostly made of.
    pub fn kind(&self) -> Kind {
        match self.content.as_ref().map(|content| &content.source) {
            _ if self.calls.is_some() => Kind::Tools,
            Some(Source::Schema(_)) => Kind::Schema,
            Some(Source::Ebnf(_)) => Kind::Ebnf,
            Some(Source::Choice(_)) => Kind::Choice,
            Some(Source::Tags(_)) => Kind::Tags,
            // A language of nothing is never compiled.
            Some(Source::Regex(_)) | None => Kind::Regex,
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

    /// Its grammar.
    ///
    /// # Errors
    /// One of its constraints does not compile.
    pub fn grammar(&self, vocabulary: &Vocabulary, limits: &Limits) -> Result<(Cfg, Vec<Finding>), Rejected> {
        let mut writer = Writer {
            builder: CfgBuilder::new(),
            vocabulary,
            limits,
            constraints: self.constraints().collect(),
            findings: Vec::new(),
        };
        let answer = writer.answer(self)?;
        let whole = writer.thought(self.thought, answer);
        let start = writer.builder.declare("answer");
        writer.builder.define(start, whole);
        Ok((writer.builder.finish(start), writer.findings))
    }
}

/// Lowers one constraint.
///
/// # Errors
/// All problems of the constraint.
pub fn lower(
    constraint: &Constraint,
    vocabulary: &Vocabulary,
    limits: &Limits,
) -> Result<(Cfg, Diagnostics), Rejected> {
    let lowered = match &constraint.source {
        Source::Schema(text) => schema::lower(text, &schema_options(constraint), limits),
        Source::Regex(text) => regex::lower(text, limits).map(|cfg| (cfg, Diagnostics::default())),
        Source::Ebnf(text) => syntax::ebnf::lower(text, limits).map(|cfg| (cfg, Diagnostics::default())),
        Source::Choice(texts) => one_of(texts, limits).map(|cfg| (cfg, Diagnostics::default())),
        Source::Tags(form) => return tags::tagged(form, constraint, vocabulary, limits),
    };
    lowered.map_err(|error| Rejected {
        constraint: constraint.clone(),
        error,
    })
}

/// The grammar of a list of texts. As a regular expression, a long list would be an automaton of its own for nothing.
fn one_of(texts: &[String], limits: &Limits) -> Result<Cfg, CompileError> {
    let bytes: usize = texts.iter().map(String::len).sum();
    if bytes > limits.source_bytes {
        let most = limits.source_bytes;
        let message = format!("the texts have {bytes} bytes, more than the limit source_bytes of {most}");
        return Err(Problem::new(ProblemKind::Limit, Place::Whole, message).into());
    }
    let mut builder = CfgBuilder::new();
    let start = builder.declare("choice");
    let ways: Vec<ExprId> = texts.iter().map(|text| builder.bytes(text)).collect();
    let body = builder.choice(ways);
    builder.define(start, body);
    Ok(builder.finish(start))
}

/// How a constraint's JSON is written.
pub fn schema_options(constraint: &Constraint) -> schema::Options {
    schema::Options {
        whitespace: match &constraint.whitespace {
            Whitespace::Flexible => schema::Whitespace::Flexible,
            Whitespace::Compact => schema::Whitespace::Compact,
            Whitespace::Pattern(pattern) => schema::Whitespace::Pattern(pattern.clone()),
        },
        key_order: match constraint.key_order {
            KeyOrder::Schema => schema::KeyOrder::Schema,
            KeyOrder::Any => schema::KeyOrder::Any,
        },
        ..schema::Options::default()
    }
}

struct Writer<'a> {
    builder: CfgBuilder,
    vocabulary: &'a Vocabulary,
    limits: &'a Limits,
    constraints: Vec<&'a Constraint>,
    findings: Vec<Finding>,
}

impl Writer<'_> {
    fn answer(&mut self, language: &Language) -> Result<ExprId, Rejected> {
        let Some(calls) = &language.calls else {
            return match &language.content {
                Some(content) => self.constraint(content),
                None => Ok(self.any_text()),
            };
        };
        let called = self.calls(calls)?;
        match (calls.mode, &language.content) {
            (Mode::Required | Mode::Bare, _) => Ok(called),
            (Mode::Auto, Some(content)) => {
                let content = self.constraint(content)?;
                Ok(self.builder.choice(vec![content, called]))
            }
            (Mode::Auto, None) => {
                let text = self.text_without(CALL);
                let maybe = self.builder.optional(called);
                Ok(self.builder.seq(vec![text, maybe]))
            }
        }
    }

    fn thought(&mut self, thought: Thought, answer: ExprId) -> ExprId {
        if thought == Thought::None {
            return answer;
        }
        let inside = self.text_without(END_THINK);
        let end = self.mark(END_THINK);
        let line = self.builder.bytes("\n");
        let lines = self.builder.repeat(line, 0, Some(2));
        let rest = self.builder.seq(vec![inside, end, lines, answer]);
        if thought == Thought::Begun {
            return rest;
        }
        let open = self.mark(THINK);
        let thinking = self.builder.seq(vec![open, rest]);
        self.builder.choice(vec![answer, thinking])
    }

    fn calls(&mut self, calls: &Calls) -> Result<ExprId, Rejected> {
        if let (Mode::Bare, Some(tool)) = (calls.mode, calls.tools.first()) {
            return self.input(&tool.input);
        }
        let (mut closed, mut ending) = (Vec::new(), Vec::new());
        for tool in &calls.tools {
            let call = self.call(tool)?;
            if tool.is_custom() {
                &mut ending
            } else {
                &mut closed
            }
            .push(call);
        }
        let any: Vec<ExprId> = closed.iter().chain(&ending).copied().collect();
        let last = self.builder.choice(any);
        if !calls.parallel || closed.is_empty() {
            return Ok(last);
        }
        let one = self.builder.choice(closed);
        let line = self.builder.bytes("\n");
        let before = self.builder.seq(vec![one, line]);
        let earlier = self.builder.repeat(before, 0, Some(CALLS - 1));
        Ok(self.builder.seq(vec![earlier, last]))
    }

    fn call(&mut self, tool: &Callable) -> Result<ExprId, Rejected> {
        let open = self.mark(CALL);
        let head = tool.head();
        let head = self.builder.bytes(head.strip_prefix(CALL).unwrap_or_default());
        let input = self.input(&tool.input)?;
        let mut parts = vec![open, head, input];
        if !tool.is_custom() {
            parts.push(self.builder.bytes(CLOSE));
            parts.push(self.mark(END_CALL));
        }
        Ok(self.builder.seq(parts))
    }

    fn input(&mut self, input: &Input) -> Result<ExprId, Rejected> {
        match input {
            Input::Arguments(constraint) | Input::Raw(Some(constraint)) => self.constraint(constraint),
            Input::Raw(None) => Ok(self.any_text()),
        }
    }

    fn constraint(&mut self, constraint: &Constraint) -> Result<ExprId, Rejected> {
        let (cfg, diagnostics) = lower(constraint, self.vocabulary, self.limits)?;
        // Two tools may take the same, so it is the place in memory that tells them apart.
        let mut places = self.constraints.iter();
        let place = places.position(|other| std::ptr::eq(*other, constraint));
        let found = diagnostics.findings.into_iter().map(|problem| Finding {
            constraint: place.unwrap_or_default(),
            problem,
        });
        self.findings.extend(found);
        Ok(self.builder.import(cfg))
    }

    /// A mark: the token of this name where the model has one that text cannot write, or else its text.
    fn mark(&mut self, mark: &str) -> ExprId {
        match self.vocabulary.special(mark) {
            Some(_) => self.builder.special(mark),
            None => self.builder.bytes(mark),
        }
    }

    fn any_text(&mut self) -> ExprId {
        let parts = any_text(self.limits);
        self.regular(parts)
    }

    fn text_without(&mut self, mark: &str) -> ExprId {
        let mut parts = any_text(self.limits);
        let with = regex::rust(&format!("(?s:.*){mark}(?s:.*)"), self.limits);
        // The marks are literals of this file without any special character, so this always parses.
        for part in with.map(|regular| regular.parts).unwrap_or_default() {
            if let Part::Match(hir) = part {
                parts.push(Part::Not(hir));
            }
        }
        self.regular(parts)
    }

    fn regular(&mut self, parts: Vec<Part>) -> ExprId {
        let id = self.builder.add_regular(Regular { parts });
        self.builder.regular(id)
    }
}

fn any_text(limits: &Limits) -> Vec<Part> {
    regex::rust("(?s:.*)", limits)
        .map(|regular| regular.parts)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform::vocab::TokenKind;

    #[test]
    fn a_list_of_texts_is_bounded_like_any_source() {
        let limits = Limits {
            source_bytes: 6,
            ..Limits::default()
        };
        let vocabulary = Vocabulary::new(&[(TokenKind::Text, "<end>")], &[0]).expect("a vocabulary");
        let list = |texts: [&str; 3]| {
            let source = Source::Choice(texts.map(str::to_owned).to_vec());
            lower(&Constraint::new(source, "guided_choice"), &vocabulary, &limits)
        };
        assert!(list(["ab", "", "cdef"]).is_ok());
        let rejected = list(["ab", "cde", "fg"]).expect_err("seven bytes");
        assert_eq!(rejected.error.problems[0].kind, ProblemKind::Limit);
    }
}
