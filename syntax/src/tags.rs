//! Structural tags: texts in which some parts obey a constraint and the rest is free.
//!
//! ```text
//!   {"triggers": ["<f="], "structures": [{"begin": "<f=a>", "schema": …, "end": "</f>"}]}     the older shape
//!   {"format": {"type": "triggered_tags" | "tag" | "sequence" | "or" | …}}                    the newer one
//!                │ read: every problem with its JSON pointer
//!                ▼
//!             Form<Content> ── lower: each content by its own front end ──► Cfg
//! ```
//!
//! Clients and engines (SGLang, vLLM, xgrammar) describe tool calls in free text this way. Of xgrammar's
//! formats, those that a grammar over text can express are supported; the others are refused by name, as is
//! every field that would have no effect.
//!
//! [`Form`] is generic over its contents, because a caller that embeds the library may know more about a
//! constraint than its text; [`Form::map`] converts between the two.

mod anything;
mod arguments;
mod lower;
mod marks;
pub(crate) mod model_formats;
mod models;
mod read;
mod recognised;
mod thought_marks;
mod token_forms;

use crate::schema::ArgumentStyle;

pub use anything::{anything, anything_without};
pub use arguments::{
    ArgumentError, ArgumentReader, ArgumentScanner, guessed_arguments, read_arguments, write_arguments,
};
pub use lower::{Contents, free_text, lower};
pub use marks::ThoughtMarks;
pub(crate) use models::unknown as unknown_format;
pub use models::{AnswerShape, Tool, ToolChoice, for_model, model_formats};
pub use read::{read, read_value};
pub use recognised::recognised;
pub use thought_marks::{shown_thought_marks, thought_marks};

/// The supported formats, for messages.
pub(crate) const FORMATS: [&str; 21] = [
    "any_text",
    "any_tokens",
    "const_string",
    "dispatch",
    "exclude_token",
    "grammar",
    "json_schema",
    "optional",
    "or",
    "plus",
    "qwen_xml_parameter",
    "regex",
    "repeat",
    "sequence",
    "star",
    "tag",
    "tags_with_separator",
    "token",
    "token_dispatch",
    "token_triggered_tags",
    "triggered_tags",
];

/// A constraint on a part of a text, as a structural tag writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    /// The language of the text.
    pub kind: ContentKind,
    /// The schema, the expression or the grammar.
    pub text: String,
    /// `true` if the properties of objects may come in any order. Only schemas use it.
    pub any_order: bool,
    /// How the properties of the outermost object are written. Only schemas use it.
    pub style: ArgumentStyle,
    /// The texts that no string contains. Only schemas use it.
    pub excludes: Vec<String>,
    /// The expression of the white space between the tokens of JSON, if the tag says it. Only schemas use it.
    pub whitespace: Option<String>,
    /// The JSON pointer to the constraint within the structural tag.
    pub pointer: String,
}

/// The language in which a [`Content`] is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentKind {
    /// A JSON Schema.
    JsonSchema,
    /// A regular expression for the whole part.
    Regex,
    /// A grammar, whose notation is recognised.
    Grammar,
}

/// The shape of a text or of a part of one. `C` is the type of the constraints on parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form<C> {
    /// Exactly this text.
    Text(String),
    /// One special token.
    Token(Token),
    /// A part that obeys a constraint.
    Content(Box<C>),
    /// Any text that contains none of these; inside a tag, also none of the ends of the tag.
    Any {
        /// The texts that it must not contain.
        without: Vec<String>,
        /// The greatest number of characters; `None` if there is no limit.
        most: Option<u32>,
    },
    /// One token, whatever its text is, except for these; inside a tag, also except for its ends.
    AnyToken {
        /// The tokens that it must not be.
        except: Vec<Token>,
    },
    /// All of these forms, one after another.
    Sequence(Vec<Form<C>>),
    /// One of these forms.
    Choice(Vec<Form<C>>),
    /// A repeated form.
    Repeat {
        /// The form that is repeated.
        form: Box<Form<C>>,
        /// The least number of repetitions.
        least: u32,
        /// The greatest number of repetitions; `None` if there is no limit.
        most: Option<u32>,
    },
    /// A part between a beginning and an end.
    Tag(Box<Tag<C>>),
    /// Free text in which each trigger begins a tag.
    Triggered {
        /// The texts that begin a tag wherever they occur.
        triggers: Vec<String>,
        /// Further texts that the free text must not contain.
        without: Vec<String>,
        /// The tags.
        tags: Vec<Tag<C>>,
        /// How many tags the text may have.
        count: Count,
    },
    /// Any tokens, in which the first token of each tag begins that tag.
    TokenTriggered {
        /// Further tokens that must not be among the free ones.
        except: Vec<Token>,
        /// The tags, which begin with tokens.
        tags: Vec<Tag<C>>,
        /// How many tags the text may have.
        count: Count,
    },
    /// Tags with a separator between them and nothing else.
    Separated {
        /// The text between two tags.
        separator: String,
        /// The tags.
        tags: Vec<Tag<C>>,
        /// How many tags the text may have.
        count: Count,
    },
}

/// How many tags a text may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Count {
    /// `true` if there must be at least one tag.
    pub at_least_one: bool,
    /// `true` if the text ends after the first tag.
    pub stop_after_first: bool,
}

/// A part between a beginning and an end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tag<C> {
    /// The beginning.
    pub begin: Mark,
    /// The form of the text between the beginning and the end.
    pub content: Form<C>,
    /// The possible ends; none if the content ends the tag.
    pub ends: Vec<Mark>,
}

/// The beginning or an end of a tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// A text, in which the names of special tokens denote those tokens.
    Text(String),
    /// One special token.
    Token(Token),
}

/// A reference to a special token in a structural tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// The name or the id of the token.
    pub name: TokenName,
    /// The JSON pointer to this reference.
    pub pointer: String,
}

/// How a structural tag identifies a special token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenName {
    /// By its id in the vocabulary.
    Id(u32),
    /// By its text, such as `<|tool|>`.
    Text(String),
}

impl<C> Form<C> {
    /// Returns the constraints in the form, in the order of the text.
    pub fn contents(&self) -> Vec<&C> {
        match self {
            Form::Text(_) | Form::Token(_) | Form::Any { .. } | Form::AnyToken { .. } => Vec::new(),
            Form::Content(content) => vec![content],
            Form::Sequence(forms) | Form::Choice(forms) => forms.iter().flat_map(Form::contents).collect(),
            Form::Repeat { form, .. } => form.contents(),
            Form::Tag(tag) => tag.content.contents(),
            Form::Triggered { tags, .. }
            | Form::TokenTriggered { tags, .. }
            | Form::Separated { tags, .. } => tags.iter().flat_map(|tag| tag.content.contents()).collect(),
        }
    }

    /// Returns the total number of bytes of the texts in the form; `bytes` returns those of a constraint.
    pub fn bytes(&self, bytes: &impl Fn(&C) -> usize) -> usize {
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        let all = |tags: &[Tag<C>]| tags.iter().map(|tag| tag.bytes(bytes)).sum::<usize>();
        match self {
            Form::Text(text) => text.len(),
            Form::Token(_) | Form::AnyToken { .. } => 0,
            Form::Content(content) => bytes(content),
            Form::Any { without, .. } => texts(without),
            Form::Sequence(forms) | Form::Choice(forms) => forms.iter().map(|form| form.bytes(bytes)).sum(),
            Form::Repeat { form, .. } => form.bytes(bytes),
            Form::Tag(tag) => tag.bytes(bytes),
            Form::Triggered {
                triggers,
                without,
                tags,
                ..
            } => texts(triggers) + texts(without) + all(tags),
            Form::TokenTriggered { tags, .. } => all(tags),
            Form::Separated { separator, tags, .. } => separator.len() + all(tags),
        }
    }

    /// Replaces each constraint in the form by the result of `change`.
    pub fn map<D>(self, change: &mut impl FnMut(C) -> D) -> Form<D> {
        match self {
            Form::Text(text) => Form::Text(text),
            Form::Token(token) => Form::Token(token),
            Form::Content(content) => Form::Content(Box::new(change(*content))),
            Form::Any { without, most } => Form::Any { without, most },
            Form::AnyToken { except } => Form::AnyToken { except },
            Form::Sequence(forms) => Form::Sequence(forms.into_iter().map(|form| form.map(change)).collect()),
            Form::Choice(forms) => Form::Choice(forms.into_iter().map(|form| form.map(change)).collect()),
            Form::Repeat { form, least, most } => Form::Repeat {
                form: Box::new(form.map(change)),
                least,
                most,
            },
            Form::Tag(tag) => Form::Tag(Box::new(tag.map(change))),
            Form::Triggered {
                triggers,
                without,
                tags,
                count,
            } => Form::Triggered {
                triggers,
                without,
                tags: tags.into_iter().map(|tag| tag.map(change)).collect(),
                count,
            },
            Form::TokenTriggered { except, tags, count } => Form::TokenTriggered {
                except,
                tags: tags.into_iter().map(|tag| tag.map(change)).collect(),
                count,
            },
            Form::Separated {
                separator,
                tags,
                count,
            } => Form::Separated {
                separator,
                tags: tags.into_iter().map(|tag| tag.map(change)).collect(),
                count,
            },
        }
    }
}

impl<C> Tag<C> {
    fn bytes(&self, bytes: &impl Fn(&C) -> usize) -> usize {
        let ends = self.ends.iter().map(Mark::bytes).sum::<usize>();
        self.begin.bytes() + self.content.bytes(bytes) + ends
    }

    fn map<D>(self, change: &mut impl FnMut(C) -> D) -> Tag<D> {
        Tag {
            begin: self.begin,
            content: self.content.map(change),
            ends: self.ends,
        }
    }
}

impl Mark {
    fn bytes(&self) -> usize {
        match self {
            Mark::Text(text) => text.len(),
            Mark::Token(_) => 0,
        }
    }
}
