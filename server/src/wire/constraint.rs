//! Constraints: what the output of a request must obey, from any of the many fields in which clients send
//! them.

pub mod callbacks;
pub mod fields;
pub mod monitors;
mod tags;
pub mod writing;

use lexiform::grammar::Notation;
use lexiform::regex::Dialect;
use lexiform::schema::{AdditionalProperties, ArgumentStyle, Numbers};
use lexiform_syntax::notation::extract::Boundary;
use lexiform_syntax::schema;
use serde_json::Value;

use super::fields::{Fields, Problems, type_name};
use crate::wire::error::Subject;

/// The source of a constraint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A JSON Schema.
    Schema(String),
    /// A regular expression for the whole text.
    Regex(String),
    /// A grammar in this notation, or in the one that is recognised.
    Grammar(String, Option<Notation>),
    /// Exactly one of these texts.
    Choice(Vec<String>),
    /// A span of this text.
    Extract(String, Boundary),
    /// Free text with tags in it.
    Tags(Box<Form>),
}

impl Source {
    /// Returns the length of the source in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Source::Schema(text)
            | Source::Regex(text)
            | Source::Grammar(text, _)
            | Source::Extract(text, _) => text.len(),
            Source::Choice(texts) => texts.iter().map(String::len).sum(),
            Source::Tags(form) => form.bytes(&|inner| inner.source.bytes()),
        }
    }
}

/// Where a JSON text may contain white space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Whitespace {
    /// In the usual styles, with no more indentation than the depth requires: models tend to loop in white
    /// space.
    #[default]
    Indented,
    /// In the usual styles, with any indentation up to a bound.
    Flexible,
    /// Nowhere.
    Compact,
    /// White space that this regular expression matches.
    Pattern(String),
}

/// The order of the properties of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyOrder {
    /// As `properties` lists them.
    #[default]
    Schema,
    /// Any.
    Any,
}

/// A constraint on the output of a request. Two constraints are equal if they mean the same, whichever field
/// they came from.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The constraint itself.
    pub source: Source,
    /// The field that the constraint came from.
    pub param: String,
    /// The client's name for the constraint.
    pub name: Option<String>,
    /// The white space of JSON.
    pub whitespace: Whitespace,
    /// The key order of JSON.
    pub key_order: KeyOrder,
    /// The dialect of a regular expression.
    pub dialect: Dialect,
    /// The additional keys of objects that list their properties and say nothing about others.
    pub additional_properties: AdditionalProperties,
    /// The spelling of numbers.
    pub numbers: Numbers,
    /// How the properties of the outermost object are written.
    pub arguments: ArgumentStyle,
    /// The texts that no string contains.
    pub excludes: Vec<String>,
    /// `true` if a keyword that was meant to assert something and has no effect is an error; this changes no
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
        ArgumentStyle,
        &[String],
        Dialect,
    ) {
        let Self {
            source,
            whitespace,
            key_order,
            additional_properties,
            numbers,
            arguments,
            excludes,
            dialect,
            ..
        } = self;
        (
            source,
            whitespace,
            *key_order,
            *additional_properties,
            *numbers,
            *arguments,
            excludes,
            *dialect,
        )
    }

    /// Creates a constraint with the default layout and the defaults for what models write.
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
            arguments: ArgumentStyle::Json,
            excludes: Vec::new(),
            strict: false,
        }
    }

    /// Returns `true` if the constraint came in a field that only older clients send.
    pub fn is_deprecated(&self) -> bool {
        let field = self.param.rsplit('.').next();
        field.is_some_and(|field| field.starts_with("guided_"))
    }

    /// Returns the subject of errors about this constraint.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            param: &self.param,
            name: self.name.as_deref(),
            is_schema: matches!(self.source, Source::Schema(_)),
        }
    }
}

/// Reads a schema as a value, or as a string that contains one.
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

/// The names of the dialects of regular expressions.
const DIALECTS: [(&str, Dialect); 3] = [
    ("rust", Dialect::Rust),
    ("ecma", Dialect::Ecma),
    ("python", Dialect::Python),
];

impl Source {
    /// Returns a grammar in Lexiform's EBNF.
    pub fn ebnf(text: String) -> Source {
        Source::Grammar(text, Some(Notation::Ebnf))
    }

    /// Returns a grammar whose notation is recognised.
    pub fn grammar(text: String) -> Source {
        Source::Grammar(text, None)
    }
}

/// Takes the notation beside a constraint, which must then be a grammar.
fn with_notation(
    fields: &mut Fields,
    constraint: Option<Constraint>,
    problems: &mut Problems,
) -> Option<Constraint> {
    let names: Vec<(&str, Notation)> = Notation::all().map(|it| (it.name(), it)).collect();
    let Some(notation) = fields.word("notation", &names, problems) else {
        return constraint;
    };
    let mut constraint = constraint;
    match constraint.as_mut().map(|constraint| &mut constraint.source) {
        Some(Source::Grammar(_, named)) => *named = Some(notation),
        _ => problems.invalid(fields.path("notation"), "requires a grammar"),
    }
    constraint
}

/// Takes the dialect or the notation beside a constraint, which must then be a regular expression or a
/// grammar.
pub(in crate::wire) fn with_dialect(
    fields: &mut Fields,
    constraint: Option<Constraint>,
    problems: &mut Problems,
) -> Option<Constraint> {
    let constraint = with_notation(fields, constraint, problems);
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

/// Takes the boundary of the spans of a text; words, unless the request says otherwise.
pub(in crate::wire) fn boundary(fields: &mut Fields, problems: &mut Problems) -> Boundary {
    let words = [("word", Boundary::Word), ("character", Boundary::Character)];
    fields.word("boundary", &words, problems).unwrap_or_default()
}

/// The form of a text or a part of it: a structural tag whose parts are under constraints.
pub type Form = lexiform_syntax::tags::Form<Constraint>;
