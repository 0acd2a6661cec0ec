//! Options by name, read from JSON: what is misspelled, of another type, or without effect for its source is
//! an error.

use std::time::Duration;

use lexiform::Options;
use lexiform::limits::Limits;
use lexiform::regex::{Dialect, Escapes};
use lexiform::repair::Costs;
use lexiform::schema::{AdditionalProperties, Draft, Formats, KeyOrder, Numbers, Refuse, Whitespace};
use lexiform_syntax::suggest;
use napi::{Error, Result};
use serde_json::{Map, Value};

use crate::error::call_error;

/// The kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    JsonSchema,
    Regex,
    Ebnf,
    Grammar,
    StructuralTag,
    Choice,
    Any,
}

impl SourceKind {
    pub(crate) const ALL: [SourceKind; 7] = [
        SourceKind::JsonSchema,
        SourceKind::Regex,
        SourceKind::Ebnf,
        SourceKind::Grammar,
        SourceKind::StructuralTag,
        SourceKind::Choice,
        SourceKind::Any,
    ];

    fn name(self) -> &'static str {
        match self {
            SourceKind::JsonSchema => "jsonSchema",
            SourceKind::Regex => "regex",
            SourceKind::Ebnf => "ebnf",
            SourceKind::Grammar => "grammar",
            SourceKind::StructuralTag => "structuralTag",
            SourceKind::Choice => "choice",
            SourceKind::Any => "any",
        }
    }

    /// Returns the kind of this name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn named(name: &str) -> Result<SourceKind> {
        let known = SourceKind::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| {
            let names = SourceKind::ALL.map(SourceKind::name).join(", ");
            call_error(format!("there is no source {name:?}; there are {names}"))
        })
    }
}

/// The options of a compile.
pub(crate) struct CompileOptions {
    pub(crate) inner: Options,
    pub(crate) timeout: Option<Duration>,
}

const SCHEMA: &[SourceKind] = &[SourceKind::JsonSchema];
const SCHEMAS: &[SourceKind] = &[SourceKind::JsonSchema, SourceKind::StructuralTag];
const GRAMMAR: &[SourceKind] = &[SourceKind::Grammar];

/// The options of a compile by name, and the sources that have each.
const OPTIONS: [(&str, &[SourceKind]); 16] = [
    ("whitespace", SCHEMA),
    ("whitespacePattern", SCHEMA),
    ("keyOrder", SCHEMA),
    ("additionalProperties", SCHEMAS),
    ("numbers", SCHEMAS),
    ("escapes", SCHEMA),
    ("draft", SCHEMA),
    ("formats", SCHEMA),
    ("documents", SCHEMA),
    ("strict", SCHEMA),
    ("exact", SCHEMA),
    ("dialect", &[SourceKind::Regex, SourceKind::StructuralTag]),
    ("notation", GRAMMAR),
    ("start", GRAMMAR),
    ("imports", GRAMMAR),
    ("timeout", &SourceKind::ALL),
];

/// Reads the options of a compile of this kind of source, where `usual` are those that are not given.
///
/// # Errors
/// The first mistake.
pub(crate) fn compile(kind: SourceKind, text: Option<&str>, usual: Options) -> Result<CompileOptions> {
    let fields = fields(text)?;
    let of_kind = |(name, kinds): &(&'static str, &[SourceKind])| kinds.contains(&kind).then_some(*name);
    let known: Vec<&str> = OPTIONS.iter().filter_map(of_kind).collect();
    if fields.contains_key("whitespace") && fields.contains_key("whitespacePattern") {
        return Err(call_error(
            "`whitespace` and `whitespacePattern` exclude each other",
        ));
    }
    let mut options = CompileOptions {
        inner: usual,
        timeout: None,
    };
    for (name, value) in &fields {
        match known.contains(&name.as_str()) {
            true => set(&mut options, name, value)?,
            false => return Err(unknown(name, &known)),
        }
    }
    Ok(options)
}

fn set(options: &mut CompileOptions, name: &str, value: &Value) -> Result<()> {
    let Options {
        schema,
        regex,
        grammar,
        ..
    } = &mut options.inner;
    match name {
        "whitespace" => schema.whitespace = choose(name, value, &WHITESPACE)?,
        "whitespacePattern" => schema.whitespace = Whitespace::Pattern(string(name, value)?),
        "keyOrder" => schema.key_order = choose(name, value, &KEY_ORDERS)?,
        "additionalProperties" => schema.additional_properties = choose(name, value, &OBJECTS)?,
        "numbers" => schema.numbers = choose(name, value, &NUMBERS)?,
        "escapes" => schema.escapes = choose(name, value, &ESCAPES)?,
        "draft" => schema.draft = Some(choose(name, value, &DRAFTS)?),
        "formats" => schema.formats = choose(name, value, &FORMATS)?,
        "documents" => schema.documents = texts(name, value)?,
        // `exact` takes precedence because it refuses more.
        "strict" if truth(name, value)? && schema.refuse != Refuse::Inexact => {
            schema.refuse = Refuse::Ineffective;
        }
        "exact" if truth(name, value)? => schema.refuse = Refuse::Inexact,
        "dialect" => *regex = choose(name, value, &DIALECTS)?,
        "notation" => {
            grammar.notation = Some(
                string(name, value)?
                    .parse()
                    .map_err(|error: String| call_error(error))?,
            )
        }
        "start" => grammar.start = Some(string(name, value)?),
        "imports" => grammar.imports = texts(name, value)?.into_iter().collect(),
        "timeout" => options.timeout = Some(duration(name, value)?),
        _ => {}
    }
    Ok(())
}

const WHITESPACE: [(&str, Whitespace); 3] = [
    ("indented", Whitespace::Indented),
    ("flexible", Whitespace::Flexible),
    ("compact", Whitespace::Compact),
];
const KEY_ORDERS: [(&str, KeyOrder); 2] = [("schema", KeyOrder::Schema), ("any", KeyOrder::Any)];
const OBJECTS: [(&str, AdditionalProperties); 2] = [
    ("closed", AdditionalProperties::Closed),
    ("open", AdditionalProperties::Specified),
];
const NUMBERS: [(&str, Numbers); 2] = [("double", Numbers::Double), ("any", Numbers::Any)];
const ESCAPES: [(&str, Escapes); 3] = [
    ("minimal", Escapes::Minimal),
    ("canonical", Escapes::Canonical),
    ("any", Escapes::Any),
];
const DRAFTS: [(&str, Draft); 5] = [
    ("4", Draft::D4),
    ("6", Draft::D6),
    ("7", Draft::D7),
    ("2019-09", Draft::D2019),
    ("2020-12", Draft::D2020),
];
const FORMATS: [(&str, Formats); 2] = [("assert", Formats::Assert), ("annotate", Formats::Annotate)];
const DIALECTS: [(&str, Dialect); 3] = [
    ("ecma", Dialect::Ecma),
    ("python", Dialect::Python),
    ("rust", Dialect::Rust),
];

/// Reads the limits of a compile and of a mask, by the names of the library's limits.
///
/// # Errors
/// The first mistake.
pub(crate) fn limits(text: Option<&str>) -> Result<Limits> {
    let mut limits = Limits::default();
    for (name, value) in &fields(text)? {
        let value = natural(name, value)?;
        let limit = match name.as_str() {
            "sourceBytes" => &mut limits.source_bytes,
            "nesting" => &mut limits.nesting,
            "exprs" => &mut limits.exprs,
            "regularStates" => &mut limits.regular_states,
            "regularBytes" => &mut limits.regular_bytes,
            "ruleStates" => &mut limits.rule_states,
            "grammarBytes" => &mut limits.grammar_bytes,
            "maskWork" => &mut limits.mask_work,
            "distanceWork" => &mut limits.distance_work,
            "fuel" => &mut limits.fuel,
            "compileBytes" => &mut limits.compile_bytes,
            "repeat" => {
                limits.repeat = u32::try_from(value).unwrap_or(u32::MAX);
                continue;
            }
            _ => return Err(call_error(format!("there is no limit `{name}`"))),
        };
        *limit = value;
    }
    Ok(limits)
}

/// The options of a repair.
pub(crate) struct RepairOptions {
    pub(crate) costs: Costs,
    pub(crate) nodes: Option<usize>,
    pub(crate) timeout: Option<Duration>,
}

/// Reads the options of a repair.
///
/// # Errors
/// The first mistake.
pub(crate) fn repair(text: Option<&str>) -> Result<RepairOptions> {
    let mut options = RepairOptions {
        costs: Costs::default(),
        nodes: None,
        timeout: None,
    };
    let cost = |name, value| natural(name, value).map(|cost| u32::try_from(cost).unwrap_or(u32::MAX));
    for (name, value) in &fields(text)? {
        match name.as_str() {
            "insert" => options.costs.insert = cost(name, value)?,
            "delete" => options.costs.delete = cost(name, value)?,
            "substitute" => options.costs.substitute = cost(name, value)?,
            "nodes" => options.nodes = Some(natural(name, value)?),
            "timeout" => options.timeout = Some(duration(name, value)?),
            _ => {
                return Err(unknown(
                    name,
                    &["insert", "delete", "substitute", "nodes", "timeout"],
                ));
            }
        }
    }
    Ok(options)
}

/// Returns a number of JavaScript as a natural number, such as a token.
///
/// # Errors
/// It is negative, too large, or no whole number.
pub(crate) fn whole(what: &str, number: f64) -> Result<u32> {
    let is_whole = (0.0..=f64::from(u32::MAX)).contains(&number) && number.fract() == 0.0;
    match is_whole {
        true => Ok(number as u32),
        false => Err(call_error(format!(
            "{what} must be a whole number from 0, not {number}"
        ))),
    }
}

/// Returns tokens.
///
/// # Errors
/// One of them is no whole number.
pub(crate) fn tokens(numbers: &[f64]) -> Result<Vec<u32>> {
    numbers.iter().map(|&number| whole("a token", number)).collect()
}

fn fields(text: Option<&str>) -> Result<Map<String, Value>> {
    let Some(text) = text else {
        return Ok(Map::new());
    };
    let read: Option<Map<String, Value>> = serde_json::from_str(text).ok();
    read.ok_or_else(|| call_error("the options must be an object"))
}

fn unknown(name: &str, known: &[&str]) -> Error {
    call_error(match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown option `{name}`; did you mean `{near}`?"),
        None => format!("unknown option `{name}` (options: {})", known.join(", ")),
    })
}

/// Returns the choice of this name, or an error that lists all names.
fn choose<T: Clone>(option: &str, value: &Value, choices: &[(&str, T)]) -> Result<T> {
    let chosen = choices.iter().find(|(known, _)| value == known);
    chosen.map(|(_, choice)| choice.clone()).ok_or_else(|| {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
        call_error(format!(
            "`{option}` is {value}; it must be one of {}",
            names.join(", ")
        ))
    })
}

fn string(option: &str, value: &Value) -> Result<String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| call_error(format!("`{option}` must be a string, not {value}")))
}

fn truth(option: &str, value: &Value) -> Result<bool> {
    let truth = value.as_bool();
    truth.ok_or_else(|| call_error(format!("`{option}` must be true or false, not {value}")))
}

fn texts(option: &str, value: &Value) -> Result<Vec<(String, String)>> {
    let object = value.as_object();
    let pairs = object.map(|object| {
        object
            .iter()
            .map(|(name, text)| Ok((name.clone(), string(option, text)?)))
    });
    pairs.map_or_else(
        || Err(call_error(format!("`{option}` must be an object of strings"))),
        Iterator::collect,
    )
}

fn natural(option: &str, value: &Value) -> Result<usize> {
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| call_error(format!("`{option}` must be a whole number from 0, not {value}")))
}

/// Reads a time in milliseconds.
fn duration(option: &str, value: &Value) -> Result<Duration> {
    let seconds = value.as_f64().map(|milliseconds| milliseconds / 1000.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| {
        call_error(format!(
            "`{option}` must be a number of milliseconds, not {value}"
        ))
    })
}
