//! Structural tags: texts some parts of which obey a constraint, and the rest of which is free.
//!
//! ```text
//!   {"triggers": ["<f="], "structures": [{"begin": "<f=a>", "schema": …, "end": "</f>"}]}     the older shape
//!   {"format": {"type": "triggered_tags" | "tag" | "sequence" | "or" | …}}                    the newer one
//!                │ read: every problem with its JSON pointer
//!                ▼
//!             Form<Content> ── lower: each content by its own front end ──► Cfg
//! ```
//!
//! This is how clients and engines (SGLang, vLLM, xgrammar) describe calls of tools in free text. Of
//! xgrammar's formats those are read that a grammar over text can express; the others are refused by name, as
//! is every field that would have no effect.
//!
//! [`Form`] is generic in what its contents are, since whoever embeds the library may know more of a
//! constraint than its text; [`Form::map`] changes one into the other.

mod anything;
mod lower;
mod read;

pub use anything::anything;
pub use lower::{Contents, free_text, lower};
pub use read::{read, read_value};

/// The formats that are understood, for messages.
pub(crate) const FORMATS: [&str; 15] = [
    "any_text",
    "const_string",
    "grammar",
    "json_schema",
    "optional",
    "or",
    "plus",
    "regex",
    "repeat",
    "sequence",
    "star",
    "tag",
    "tags_with_separator",
    "token",
    "triggered_tags",
];

/// A constraint on a part of a text, as a structural tag writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    /// The language of the text.
    pub kind: ContentKind,
    /// The schema, the expression or the grammar.
    pub text: String,
    /// Whether the properties of objects may stand in any order. For schemas alone.
    pub any_order: bool,
    /// The JSON pointer at which it stands in the structural tag.
    pub pointer: String,
}

/// In which language a [`Content`] is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentKind {
    /// A JSON Schema.
    JsonSchema,
    /// A regular expression for the whole part.
    Regex,
    /// A grammar in EBNF.
    Ebnf,
}

/// What a text, or a part of it, looks like. `C` is what constrains a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form<C> {
    /// Exactly this text.
    Text(String),
    /// One special token.
    Token(Token),
    /// What obeys a constraint.
    Content(Box<C>),
    /// Any text without these; inside a tag, also without what ends the tag.
    Any {
        /// What must not stand in it.
        without: Vec<String>,
    },
    /// All of these, one after another.
    Sequence(Vec<Form<C>>),
    /// One of these.
    Choice(Vec<Form<C>>),
    /// The same form several times.
    Repeat {
        /// What is repeated.
        form: Box<Form<C>>,
        /// How often at least.
        least: u32,
        /// How often at most; without, as often as one likes.
        most: Option<u32>,
    },
    /// A part between a beginning and an end.
    Tag(Box<Tag<C>>),
    /// Free text in which each trigger begins a tag.
    Triggered {
        /// What begins a tag wherever it stands.
        triggers: Vec<String>,
        /// What must not stand in the free text besides.
        without: Vec<String>,
        /// The tags.
        tags: Vec<Tag<C>>,
        /// How many there are.
        count: Count,
    },
    /// Tags and nothing else.
    Separated {
        /// What stands between two of them.
        separator: String,
        /// The tags.
        tags: Vec<Tag<C>>,
        /// How many there are.
        count: Count,
    },
}

/// How many tags there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Count {
    /// Whether there must be one.
    pub at_least_one: bool,
    /// Whether the text ends with the first.
    pub stop_after_first: bool,
}

/// A part between a beginning and an end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tag<C> {
    /// The beginning.
    pub begin: Mark,
    /// What stands between.
    pub content: Form<C>,
    /// The possible ends, at least one.
    pub ends: Vec<Mark>,
}

/// What begins or ends a tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// A text. The names of special tokens in it stand for those tokens.
    Text(String),
    /// One special token.
    Token(Token),
}

/// A special token, as a structural tag names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Which one.
    pub name: TokenName,
    /// The JSON pointer at which it is named.
    pub pointer: String,
}

/// By what a special token is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenName {
    /// By its number in the vocabulary.
    Id(u32),
    /// By its text, such as `<|tool|>`.
    Text(String),
}

impl<C> Form<C> {
    /// The constraints in it, in the order of the text.
    pub fn contents(&self) -> Vec<&C> {
        match self {
            Form::Text(_) | Form::Token(_) | Form::Any { .. } => Vec::new(),
            Form::Content(content) => vec![content],
            Form::Sequence(forms) | Form::Choice(forms) => forms.iter().flat_map(Form::contents).collect(),
            Form::Repeat { form, .. } => form.contents(),
            Form::Tag(tag) => tag.content.contents(),
            Form::Triggered { tags, .. } | Form::Separated { tags, .. } => {
                tags.iter().flat_map(|tag| tag.content.contents()).collect()
            }
        }
    }

    /// The bytes of its texts, where `bytes` counts those of a constraint.
    pub fn bytes(&self, bytes: &impl Fn(&C) -> usize) -> usize {
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        let all = |tags: &[Tag<C>]| tags.iter().map(|tag| tag.bytes(bytes)).sum::<usize>();
        match self {
            Form::Text(text) => text.len(),
            Form::Token(_) => 0,
            Form::Content(content) => bytes(content),
            Form::Any { without } => texts(without),
            Form::Sequence(forms) | Form::Choice(forms) => forms.iter().map(|form| form.bytes(bytes)).sum(),
            Form::Repeat { form, .. } => form.bytes(bytes),
            Form::Tag(tag) => tag.bytes(bytes),
            Form::Triggered {
                triggers,
                without,
                tags,
                ..
            } => texts(triggers) + texts(without) + all(tags),
            Form::Separated { separator, tags, .. } => separator.len() + all(tags),
        }
    }

    /// The same form with other constraints.
    pub fn map<D>(self, change: &mut impl FnMut(C) -> D) -> Form<D> {
        match self {
            Form::Text(text) => Form::Text(text),
            Form::Token(token) => Form::Token(token),
            Form::Content(content) => Form::Content(Box::new(change(*content))),
            Form::Any { without } => Form::Any { without },
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
