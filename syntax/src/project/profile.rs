//! Profiles: the part of JSON Schema that a target takes, as data.
//!
//! A profile lists what is taken; everything else is not. The profiles of `profiles/` are written from the
//! documents that they name, at the date that they name, and a caller may bring further ones. Field by field
//! they say what a *written* schema may contain. How a target reads what it takes is part of this: a pattern
//! may have to span the whole string, and a tuple may have to have all its items.

use serde::Deserialize;

use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};

/// The part of JSON Schema that a target takes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name by which it is chosen.
    pub name: String,
    /// What it is the profile of.
    pub title: String,
    /// The documents that it was written from.
    pub source: Vec<String>,
    /// The month of these documents.
    pub date: String,
    pub(super) root: Root,
    /// `true` if the schema `{}` is taken.
    pub(super) any: bool,
    /// `true` if `type` may be a list.
    pub(super) types: bool,
    /// `true` if `anyOf` is taken below the root.
    pub(super) union: bool,
    pub(super) constants: Constants,
    /// The keywords that are taken for numbers.
    pub(super) number: Vec<NumberKeyword>,
    /// The keywords that are taken for integers.
    pub(super) integer: Vec<NumberKeyword>,
    pub(super) string: Strings,
    pub(super) array: Arrays,
    pub(super) object: Objects,
    /// `true` if `allOf` and `not` are taken, to demand several things of a string or number.
    pub(super) combine: bool,
    pub(super) references: References,
    /// `true` if `$ref` may have annotations beside it.
    pub(super) beside_reference: bool,
    pub(super) limits: SizeLimits,
}

/// The values that the root may describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Root {
    Any,
    /// One object; the root is no union.
    Object,
}

/// How finite sets of values are taken.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Constants {
    /// `true` if `const` is taken.
    pub(super) r#const: bool,
    /// The kinds of value that `enum` and `const` may contain.
    pub(super) kinds: Vec<ConstantKind>,
}

/// A kind of value in an `enum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ConstantKind {
    String,
    Number,
    Boolean,
    Null,
    Array,
    Object,
}

impl ConstantKind {
    pub(super) fn of(value: &serde_json::Value) -> ConstantKind {
        match value {
            serde_json::Value::Null => ConstantKind::Null,
            serde_json::Value::Bool(_) => ConstantKind::Boolean,
            serde_json::Value::Number(_) => ConstantKind::Number,
            serde_json::Value::String(_) => ConstantKind::String,
            serde_json::Value::Array(_) => ConstantKind::Array,
            serde_json::Value::Object(_) => ConstantKind::Object,
        }
    }
}

/// A keyword for numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum NumberKeyword {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
    MultipleOf,
}

impl NumberKeyword {
    pub(super) fn name(self) -> &'static str {
        match self {
            NumberKeyword::Minimum => "minimum",
            NumberKeyword::Maximum => "maximum",
            NumberKeyword::ExclusiveMinimum => "exclusiveMinimum",
            NumberKeyword::ExclusiveMaximum => "exclusiveMaximum",
            NumberKeyword::MultipleOf => "multipleOf",
        }
    }
}

/// What is taken for strings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Strings {
    /// `true` if `minLength` and `maxLength` are taken.
    pub(super) lengths: bool,
    /// The formats that are taken.
    pub(super) formats: Vec<String>,
    /// How `pattern` is taken, if it is.
    pub(super) pattern: Option<Patterns>,
}

/// How `pattern` is taken: without look-around, word boundaries and back references.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Patterns {
    /// `true` if a pattern begins with `^` and ends with `$`, as it describes the whole string.
    pub(super) anchored: bool,
    /// How any one character is written.
    pub(super) anything: String,
    /// The largest count of a repetition.
    pub(super) repeat: u32,
    /// What `pattern` may stand beside.
    pub(super) beside: Vec<Beside>,
}

/// A demand on strings that may stand beside a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Beside {
    Format,
    Lengths,
}

/// What is taken for arrays.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arrays {
    pub(super) prefix: Prefix,
    /// The largest `minItems`; `None` if any is taken.
    pub(super) least: Option<u64>,
    /// `true` if `maxItems` is taken.
    pub(super) most: bool,
    /// `true` if `uniqueItems` is taken.
    pub(super) unique: bool,
}

/// How `prefixItems` is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Prefix {
    None,
    /// All its items are there, and none after them.
    Fixed,
    /// As the specification says.
    Open,
}

/// What is taken for objects.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Objects {
    pub(super) rest: RestRule,
    /// `true` if a property may be left out of `required`.
    pub(super) optional: bool,
    /// `true` if `minProperties` and `maxProperties` are taken.
    pub(super) counts: bool,
}

/// Where `additionalProperties` may be a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RestRule {
    /// Nowhere: it is `false` in every object.
    Never,
    /// In objects without properties.
    Alone,
    Any,
    /// Everywhere, and `patternProperties` beside it.
    Patterns,
}

/// Which references are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum References {
    None,
    /// Those to `$defs` without further references.
    Leaves,
    /// Those to `$defs` that lead into no circle.
    Acyclic,
    Recursive,
}

/// Limits on a whole schema; `None` where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SizeLimits {
    /// The number of properties of all objects.
    pub(super) properties: Option<usize>,
    /// The largest length of strings and arrays that may be demanded.
    pub(super) counts: Option<u64>,
    /// How deep objects nest.
    pub(super) depth: Option<usize>,
    /// The number of values of all `enum`s.
    pub(super) enum_values: Option<usize>,
    /// The characters of all names of properties and definitions and of all constants.
    pub(super) name_characters: Option<usize>,
    /// A bound on the characters of an `enum` of many strings.
    pub(super) large_enum: Option<LargeEnum>,
    /// The number of properties that are not required.
    pub(super) optional: Option<usize>,
    /// The number of unions, of types and of schemas.
    pub(super) unions: Option<usize>,
}

/// A bound on an `enum` of many strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LargeEnum {
    /// The number of values above which it holds.
    pub(super) values: usize,
    /// The characters of all values together.
    pub(super) characters: usize,
}

/// The profiles that come with the library.
const BUILT_IN: [(&str, &str); 6] = [
    ("openai-strict", include_str!("profiles/openai-strict.json")),
    ("anthropic", include_str!("profiles/anthropic.json")),
    ("gemini", include_str!("profiles/gemini.json")),
    ("llama.cpp", include_str!("profiles/llama.cpp.json")),
    ("xgrammar", include_str!("profiles/xgrammar.json")),
    ("outlines", include_str!("profiles/outlines.json")),
];

/// A profile that takes everything that a [form](super::form) can say, to write what a projection means.
const EVERYTHING: &str = include_str!("profiles/everything.json");

impl Profile {
    /// Returns the names of the profiles that come with the library.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Returns a profile that comes with the library.
    pub fn named(name: &str) -> Option<Profile> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Profile::read(text).ok()
    }

    pub(super) fn everything() -> Profile {
        Profile::read(EVERYTHING).expect("a profile of this crate, which a test reads")
    }

    /// Reads a profile from JSON.
    ///
    /// # Errors
    /// Fails with the line and column of what is no JSON, of an unknown field, and of a value that a field
    /// cannot have.
    pub fn read(text: &str) -> Result<Profile, CompileError> {
        let problem = |error: serde_json::Error| {
            let place = Place::LineColumn {
                line: error.line(),
                column: error.column(),
            };
            let kind = match error.is_data() {
                true => ProblemKind::Invalid,
                false => ProblemKind::Syntax,
            };
            let message = error.to_string();
            let message = message
                .rsplit_once(" at line ")
                .map_or(&*message, |(text, _)| text);
            CompileError::from(Problem::new(kind, place, format!("the profile: {message}")))
        };
        let profile: Profile = serde_json::from_str(text).map_err(problem)?;
        match profile.contradiction() {
            None => Ok(profile),
            Some(message) => Err(Problem::new(
                ProblemKind::Invalid,
                Place::Whole,
                format!("the profile: {message}"),
            )
            .into()),
        }
    }

    /// Returns why no schema could be written for it, if so.
    fn contradiction(&self) -> Option<&'static str> {
        if !self.union && !self.types {
            return Some("neither `union` nor `types` is taken, so that no value could be of two kinds");
        }
        if self.limits.depth == Some(0) || self.limits.properties == Some(0) {
            return Some("a limit of 0 leaves no schema");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_of_this_crate_can_be_read() {
        for (name, text) in BUILT_IN {
            let profile = Profile::read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(profile.name, name);
            assert!(!profile.source.is_empty() && !profile.date.is_empty(), "{name}");
        }
        assert_eq!(Profile::everything().references, References::Recursive);
    }

    #[test]
    fn unknown_fields_and_values_are_refused_with_their_place() {
        let text = BUILT_IN[0]
            .1
            .replace("\"any\": false", "\"any\": false, \"oneOf\": true");
        let error = Profile::read(&text).expect_err("an unknown field");
        assert!(error.to_string().contains("line 7"), "{error}");
        assert!(error.to_string().contains("oneOf"), "{error}");
        let text = BUILT_IN[0].1.replace("\"never\"", "\"sometimes\"");
        assert!(Profile::read(&text).is_err());
        assert!(Profile::read("{").is_err());
    }
}
