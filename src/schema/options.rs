//! The options of a compile: how JSON is written, and what a schema means where it does not say.

use crate::regex::Escapes;

use super::draft::Draft;

/// How JSON is written, and what a schema means where it does not say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The order of the keys of an object.
    pub key_order: KeyOrder,
    /// Where white space may stand.
    pub whitespace: Whitespace,
    /// How characters of strings may be spelled.
    pub escapes: Escapes,
    /// The draft of a schema without `$schema`. `None` is 2020-12 that also understands the older spellings of keywords.
    pub draft: Option<Draft>,
    /// What `format` does.
    pub formats: Formats,
    /// Documents that references may name, by their URI, as JSON texts. Nothing is ever fetched.
    pub documents: Vec<(String, String)>,
    /// Which schemas are refused although they can be compiled.
    pub refuse: Refuse,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            key_order: KeyOrder::Schema,
            whitespace: Whitespace::Flexible,
            escapes: Escapes::Minimal,
            draft: None,
            formats: Formats::Assert,
            documents: Vec::new(),
            refuse: Refuse::Nothing,
        }
    }
}

/// Which schemas are refused although they can be compiled. What is not refused is told as a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Refuse {
    /// None.
    #[default]
    Nothing,
    /// Those with a keyword that has no effect and was [meant to have one](crate::schema::is_lost_assertion): `strict` in the API, on the
    /// command line and in Python.
    Ineffective,
    /// Those that are not enforced exactly: also those of which fewer values are allowed than they say (see
    /// [`report`](crate::schema::report())), and those with an unknown `format`. How values are spelled is no reason, since every
    /// integer would be one. `exact` on the command line and in Python.
    Inexact,
}

/// The order in which the keys of an object are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyOrder {
    /// As the schema lists them; optional ones may be left out, and those that it does not list come last.
    ///
    /// The order is that in which the keys of `properties` are met when the schema is read from the top: keyword by
    /// keyword as they are written, and where there is a `$ref` or an `allOf`, what it leads to is read there.
    /// The chosen branches of `anyOf` and `oneOf` are read at the end of the schema that has them; what `if` and
    /// `dependent…` ask for, since it mostly speaks of the same keys again, at the end of all. Keys that only `required`
    /// or an `enum` of `propertyNames` names come after those, in that order, and then all further keys in any order.
    Schema,
    /// Any order: the meaning of the specification.
    Any,
}

/// What `format` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Formats {
    /// Strings are of the format.
    Assert,
    /// Nothing, as the specification has it by default.
    Annotate,
}

/// Where white space may stand between the tokens of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whitespace {
    /// None, or one space after `:` and `,`, or line breaks with a bounded indentation. Never unbounded: models loop in it.
    Flexible,
    /// None at all.
    Compact,
    /// What this regular expression (in the syntax of Rust's `regex`) matches, after `{ [ , :` and before `] }`; what is
    /// empty is `{}` and `[]` in any case.
    Pattern(String),
}
