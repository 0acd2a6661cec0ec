//! The options of a compile: how JSON is written, and what a schema means where it does not say.
//!
//! # Why the order of keys is the order of reading
//!
//! [`KeyOrder::Schema`] takes the keys of several `properties` in the order in which they are read. Mixing
//! them would accept two more schemas of MaskBench, and would cost every object the choice between all
//! orders.

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
    /// How numbers may be spelled.
    pub numbers: Numbers,
    /// What an object may hold that lists its properties and says nothing of others.
    pub additional_properties: AdditionalProperties,
    /// The draft of a schema without `$schema`. `None` is 2020-12 that also understands the older spellings
    /// of keywords.
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
            numbers: Numbers::Any,
            additional_properties: AdditionalProperties::Specified,
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
    /// Those with a keyword that has no effect and was [meant to have one](crate::schema::is_lost_assertion):
    /// `strict` in the API, on the command line and in Python.
    Ineffective,
    /// Those that are not enforced exactly: also those of which fewer values are allowed than they say (see
    /// [`report`](crate::schema::report())), and those with an unknown `format`. How values are spelled is no
    /// reason, since every integer would be one. `exact` on the command line and in Python.
    Inexact,
}

impl Options {
    /// The options under which models write: closed objects, numbers as programs write them, and no more
    /// white space than an indentation.
    ///
    /// A model that may add a key to an object often goes on adding keys until its tokens end, and the digits
    /// of a number need no end either. The service, the command line, the bindings and the plug-ins start
    /// from these options; the [default](Options::default) has the meaning of the specification.
    pub fn for_generation() -> Options {
        Options {
            whitespace: Whitespace::Indented,
            numbers: Numbers::Double,
            additional_properties: AdditionalProperties::Closed,
            ..Options::default()
        }
    }
}

/// What an object may hold that lists its properties and says nothing of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdditionalProperties {
    /// Any further keys: the meaning of the specification.
    Specified,
    /// No further keys.
    ///
    /// An object is closed if, after references, `allOf` and the branches that were taken are put together,
    /// some `properties` applies to it, and neither `additionalProperties`, `unevaluatedProperties` nor
    /// `propertyNames` does. Its keys are then those that any of its `properties` lists, those that match its
    /// `patternProperties`, and those that `required`, `dependentRequired` or a condition names. An object
    /// that would have no value if it were closed, because `minProperties` asks for more keys than there are,
    /// stays open.
    Closed,
}

/// How numbers may be spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// In all spellings that JSON has, as far as they can be told apart.
    Any,
    /// As programs write doubles: integers in digits only (`34`, never `34.0`, `34e0` or `-0`) and at most 20
    /// of them, other numbers in at most 17 significant digits and three digits of exponent.
    ///
    /// No integer of 64 bits is lost, and no number that a double holds. Constants are written in all their
    /// digits. Bounds beyond the precision of a double leave as many digits as they need.
    Double,
}

/// The order in which the keys of an object are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyOrder {
    /// As the schema lists them; optional ones may be left out, and those that it does not list come last.
    ///
    /// The order is that in which the keys of `properties` are met when the schema is read from the top:
    /// keyword by keyword as they are written, and where there is a `$ref` or an `allOf`, what it leads to is
    /// read there. The chosen branches of `anyOf` and `oneOf` are read at the end of the schema that has
    /// them; what `if` and `dependent…` ask for, since it mostly speaks of the same keys again, at the end of
    /// all. Keys that only `required` or an `enum` of `propertyNames` names come after those, in that order,
    /// and then all further keys in any order.
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
    /// None, or one space after `:` and `,`, or line breaks with a bounded indentation. Never unbounded:
    /// models loop in it.
    Flexible,
    /// The same with no more indentation than the depth needs: up to eight spaces or tabs for each bracket
    /// that is open, and 64 where values may nest without end.
    Indented,
    /// None at all.
    Compact,
    /// What this regular expression (in the syntax of Rust's `regex`) matches, after `{ [ , :` and before
    /// `] }`; what is empty is `{}` and `[]` in any case.
    Pattern(String),
}
