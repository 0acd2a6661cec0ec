//! The options of a compile, by their names in Python.

use std::collections::BTreeMap;

use lexiform::limits::Limits;
use lexiform::regex::Dialect;
use lexiform::schema::{AdditionalProperties, Draft, Formats, KeyOrder, Numbers, Refuse, Whitespace};
use lexiform_syntax::regex::Escapes;
use lexiform_syntax::schema;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Returns the choice of this name, or an error that lists all names.
fn choose<T: Clone>(option: &str, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    let chosen = choices.iter().find(|(known, _)| *known == name);
    chosen.map(|(_, choice)| choice.clone()).ok_or_else(|| {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("{option}={name:?} is not one of {names}"))
    })
}

/// The keywords of `Compiler.json_schema`, as they were given.
pub(super) struct SchemaKeywords<'a> {
    pub(super) whitespace: &'a str,
    pub(super) whitespace_pattern: Option<String>,
    pub(super) key_order: &'a str,
    pub(super) additional_properties: &'a str,
    pub(super) numbers: &'a str,
    pub(super) escapes: &'a str,
    pub(super) draft: Option<&'a str>,
    pub(super) formats: &'a str,
    pub(super) documents: BTreeMap<String, String>,
    pub(super) strict: bool,
    pub(super) exact: bool,
}

impl SchemaKeywords<'_> {
    /// Returns the options that they name.
    pub(super) fn options(self) -> PyResult<schema::Options> {
        let spaces = [
            ("indented", Whitespace::Indented),
            ("flexible", Whitespace::Flexible),
            ("compact", Whitespace::Compact),
        ];
        let orders = [("schema", KeyOrder::Schema), ("any", KeyOrder::Any)];
        let escapes = [
            ("minimal", Escapes::Minimal),
            ("canonical", Escapes::Canonical),
            ("any", Escapes::Any),
        ];
        let drafts = [
            ("4", Draft::D4),
            ("6", Draft::D6),
            ("7", Draft::D7),
            ("2019-09", Draft::D2019),
            ("2020-12", Draft::D2020),
        ];
        let formats = [("assert", Formats::Assert), ("annotate", Formats::Annotate)];
        let whitespace = choose("whitespace", self.whitespace, &spaces)?;
        let draft = self.draft.map(|draft| choose("draft", draft, &drafts));
        Ok(schema::Options {
            key_order: choose("key_order", self.key_order, &orders)?,
            whitespace: self.whitespace_pattern.map_or(whitespace, Whitespace::Pattern),
            escapes: choose("escapes", self.escapes, &escapes)?,
            draft: draft.transpose()?,
            formats: choose("formats", self.formats, &formats)?,
            documents: self.documents.into_iter().collect(),
            // `exact` takes precedence because it refuses more.
            refuse: match (self.exact, self.strict) {
                (true, _) => Refuse::Inexact,
                (_, true) => Refuse::Ineffective,
                _ => Refuse::Nothing,
            },
            ..writing(self.additional_properties, self.numbers)?
        })
    }
}

/// Returns the options of schemas for generation by models, with these choices.
pub(super) fn writing(additional_properties: &str, numbers: &str) -> PyResult<schema::Options> {
    let objects = [
        ("closed", AdditionalProperties::Closed),
        ("open", AdditionalProperties::Specified),
    ];
    let spellings = [("double", Numbers::Double), ("any", Numbers::Any)];
    Ok(schema::Options {
        additional_properties: choose("additional_properties", additional_properties, &objects)?,
        numbers: choose("numbers", numbers, &spellings)?,
        ..schema::Options::for_generation()
    })
}

/// Returns the dialect of regular expressions of this name.
pub(super) fn dialect(name: &str) -> PyResult<Dialect> {
    let dialects = [
        ("python", Dialect::Python),
        ("ecma", Dialect::Ecma),
        ("rust", Dialect::Rust),
    ];
    choose("dialect", name, &dialects)
}

/// Returns the default limits with some of them changed by name.
pub(super) fn limits(changed: BTreeMap<String, usize>) -> PyResult<Limits> {
    let mut limits = Limits::default();
    for (name, value) in changed {
        let limit = match name.as_str() {
            "source_bytes" => &mut limits.source_bytes,
            "nesting" => &mut limits.nesting,
            "exprs" => &mut limits.exprs,
            "regular_states" => &mut limits.regular_states,
            "regular_bytes" => &mut limits.regular_bytes,
            "rule_states" => &mut limits.rule_states,
            "grammar_bytes" => &mut limits.grammar_bytes,
            "mask_work" => &mut limits.mask_work,
            "distance_work" => &mut limits.distance_work,
            "fuel" => &mut limits.fuel,
            "compile_bytes" => &mut limits.compile_bytes,
            "repeat" => {
                limits.repeat = u32::try_from(value).unwrap_or(u32::MAX);
                continue;
            }
            _ => return Err(PyValueError::new_err(format!("there is no limit {name:?}"))),
        };
        *limit = value;
    }
    Ok(limits)
}
