//! Constraints: what the output of a request must obey, in whichever of many fields a client asks for it.

pub mod fields;
pub mod monitors;
mod tags;
pub mod writing;

use lexiform::regex::Dialect;
use lexiform::schema::{AdditionalProperties, Numbers};
use lexiform_syntax::notation::extract::Boundary;
use lexiform_syntax::schema;
use serde_json::Value;

use super::fields::{Fields, Problems, type_name};
use crate::wire::error::Subject;

/// The text of a constraint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A JSON Schema.
    Schema(String),
    /// A regular expression for the whole text.
    Regex(String),
    /// A grammar in EBNF.
    Ebnf(String),
    /// Exactly one of these texts.
    Choice(Vec<String>),
    /// A span of this text.
    Extract(String, Boundary),
    /// Free text with tags in it.
    Tags(Box<Form>),
}

impl Source {
    /// How long it is.
    pub fn bytes(&self) -> usize {
        match self {
            Source::Schema(text) | Source::Regex(text) | Source::Ebnf(text) | Source::Extract(text, _) => {
                text.len()
            }
            Source::Choice(texts) => texts.iter().map(String::len).sum(),
            Source::Tags(form) => form.bytes(&|inner| inner.source.bytes()),
        }
    }
}

/// Where a JSON text may hold whitespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Whitespace {
    /// In the usual styles, with no more indentation than the depth needs: models loop in white space.
    #[default]
    Indented,
    /// In the usual styles, with any indentation up to a bound.
    Flexible,
    /// Nowhere.
    Compact,
    /// What this regular expression matches.
    Pattern(String),
}

/// In which order the properties of an object stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyOrder {
    /// As `properties` lists them.
    #[default]
    Schema,
    /// Any.
    Any,
}

/// What the output of a request must obey. Two are equal if they mean the same, wherever they came from.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The constraint itself.
    pub source: Source,
    /// The field it came from.
    pub param: String,
    /// The client's name for it.
    pub name: Option<String>,
    /// Whitespace of JSON, if the client chose.
    pub whitespace: Whitespace,
    /// Key order of JSON, if the client chose.
    pub key_order: KeyOrder,
    /// The dialect of a regular expression.
    pub dialect: Dialect,
    /// What objects may hold that list their properties and say nothing of others.
    pub additional_properties: AdditionalProperties,
    /// How numbers are spelled.
    pub numbers: Numbers,
    /// Whether a keyword that was meant to assert something and has no effect is an error; it changes no
    /// text.
    pub strict: bool,
}

impl PartialEq for Constraint {
    fn eq(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }
}

impl Eq for Constraint {}

impl std::hash::Hash for Constraint {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.meaning().hash(state);
    }
}

impl Constraint {
    fn meaning(
        &self,
    ) -> (
        &Source,
        &Whitespace,
        KeyOrder,
        AdditionalProperties,
        Numbers,
        Dialect,
    ) {
        let Self {
            source,
            whitespace,
            key_order,
            additional_properties,
            numbers,
            dialect,
            ..
        } = self;
        (
            source,
            whitespace,
            *key_order,
            *additional_properties,
            *numbers,
            *dialect,
        )
    }

    /// A constraint with the default layout, and what models write by default.
    pub fn new(source: Source, param: impl Into<String>) -> Self {
        let schema::Options {
            additional_properties,
            numbers,
            ..
        } = schema::Options::for_generation();
        Self {
            source,
            param: param.into(),
            name: None,
            whitespace: Whitespace::default(),
            key_order: KeyOrder::default(),
            dialect: Dialect::default(),
            additional_properties,
            numbers,
            strict: false,
        }
    }

    /// Whether it came in a field that only older clients send.
    pub fn is_deprecated(&self) -> bool {
        let field = self.param.rsplit('.').next();
        field.is_some_and(|field| field.starts_with("guided_"))
    }

    /// What an error about this constraint should call it.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            param: &self.param,
            name: self.name.as_deref(),
            is_schema: matches!(self.source, Source::Schema(_)),
        }
    }
}

/// A schema as a value, or as a string that holds one.
pub(in crate::wire) fn schema_constraint(
    value: Value,
    param: String,
    problems: &mut Problems,
) -> Option<Constraint> {
    let text = match value {
        Value::Object(_) | Value::Bool(_) => value.to_string(),
        Value::String(text) => text,
        other => {
            problems.invalid(param, format!("expected a schema, found {}", type_name(&other)));
            return None;
        }
    };
    Some(Constraint::new(Source::Schema(text), param))
}

/// The dialects of regular expressions by their names.
const DIALECTS: [(&str, Dialect); 3] = [
    ("rust", Dialect::Rust),
    ("ecma", Dialect::Ecma),
    ("python", Dialect::Python),
];

/// Takes the dialect that stands beside a constraint, which must be a regular expression then.
pub(in crate::wire) fn with_dialect(
    fields: &mut Fields,
    constraint: Option<Constraint>,
    problems: &mut Problems,
) -> Option<Constraint> {
    let Some(dialect) = fields.word("dialect", &DIALECTS, problems) else {
        return constraint;
    };
    let is_regex = |constraint: &Constraint| matches!(constraint.source, Source::Regex(_));
    if !constraint.as_ref().is_some_and(is_regex) {
        problems.invalid(fields.path("dialect"), "requires a regular expression");
    }
    constraint.map(|constraint| Constraint {
        dialect,
        ..constraint
    })
}

/// Where the spans of a text begin and end; at words, unless the request says otherwise.
pub(in crate::wire) fn boundary(fields: &mut Fields, problems: &mut Problems) -> Boundary {
    let words = [("word", Boundary::Word), ("character", Boundary::Character)];
    fields.word("boundary", &words, problems).unwrap_or_default()
}

/// What a text, or a part of it, looks like: a structural tag whose parts obey constraints.
pub type Form = lexiform_syntax::tags::Form<Constraint>;
