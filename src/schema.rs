//! JSON Schema becomes a grammar of JSON texts.
//!
//! ```text
//!   text ─source─► JSON ─parse, resolve─► keyword tree ─normal─► normal forms ─lower─► Cfg
//! ```
//!
//! * `source` reads the text within the limits;
//! * `parse` makes the keyword tree, the same for all drafts;
//! * `resolve` leads every reference to a node;
//! * `normal` is an algebra: per JSON type, a union of conjunctions, closed under intersection and complement;
//! * `lower` writes the normal forms as a grammar, in the spelling that the options ask for.
//!
//! A keyword is enforced exactly, or less is allowed than it says and a finding tells so, or it is refused with its JSON
//! pointer; nothing is widened. [`report`] says which it is of every assertion, [`Options::strict`] refuses the second, and
//! [`normal_form`] prints what the algebra made of a schema. A JSON text belongs to the grammar if its value is valid and
//! its spelling is one that the [`Options`] allow; where values are compared, some spellings are left out, such as `10e-1` for
//! an integer ([`Enforced::Spelled`]), and each value has one still. Exponents are written up to what a binary number of 64
//! bits holds, so that no number is read as infinity by a parser that keeps doubles.
//!
//! ```
//! use lexiform::{limits::Limits, schema};
//! let text = r#"{"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}}"#;
//! assert!(schema::lower(text, &schema::Options::default(), &Limits::default()).is_ok());
//!
//! let text = r#"{"properties": {"age": {"minimum": "zero"}}}"#;
//! let error = schema::lower(text, &schema::Options::default(), &Limits::default()).unwrap_err();
//! assert_eq!(error.to_string(), "#/properties/age/minimum: `minimum` must be a number, not \"zero\"");
//! ```

mod decimal;
mod draft;
mod dynamic;
mod findings;
mod format;
mod goal;
mod lower;
mod metaschema;
mod node;
mod normal;
mod parse;
mod report;
mod resolve;
mod show;
pub mod sketch;
mod source;
mod stray;
mod text;
mod uri;

pub use draft::Draft;
pub use report::{Assertion, Enforced, Report, report};
pub use show::normal_form;
pub use stray::is_meant_to_assert;

use crate::error::{CompileError, Diagnostics, Place, Problem, ProblemKind};
use crate::grammar::Cfg;
use crate::limits::Limits;
use crate::regex::Escapes;

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
    /// Whether a schema is refused of which fewer values are allowed than it says; see [`report`]. How they are
    /// spelled is no reason: every integer would be one.
    pub strict: bool,
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
            strict: false,
        }
    }
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
    /// or an `enum` of `propertyNames` names come behind those, in that order, and then all further keys in any order.
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

/// Compiles a schema to a grammar.
///
/// # Errors
/// All problems of the schema; where nothing satisfies it, the assertions that contradict each other. With
/// [`Options::strict`], everything of which less would be allowed than the schema says.
pub fn lower(text: &str, options: &Options, limits: &Limits) -> Result<(Cfg, Diagnostics), CompileError> {
    let limits = &*limits.begin();
    limits.cancel.unless(lowered(text, options, limits))
}

fn lowered(text: &str, options: &Options, limits: &Limits) -> Result<(Cfg, Diagnostics), CompileError> {
    let (parsed, mut diagnostics) = read(text, options, limits)?;
    let forms = normal::normalise(parsed, limits)?;
    let (cfg, notes) =
        lower::grammar(&forms, options, limits).map_err(|error| explained(error, text, options, limits))?;
    for note in forms.notes.iter().cloned().chain(notes) {
        diagnostics.push(note);
    }
    if options.strict {
        let problems: Vec<Problem> = report::narrowed(&diagnostics).cloned().collect();
        if !problems.is_empty() {
            return Err(CompileError { problems });
        }
    }
    Ok((cfg, diagnostics))
}

/// The error of a schema that nothing satisfies, with the assertions that contradict each other where they can be found.
pub(crate) fn explained(error: CompileError, text: &str, options: &Options, limits: &Limits) -> CompileError {
    let mut kinds = error.problems.iter().map(|problem| problem.kind);
    if !kinds.all(|kind| kind == ProblemKind::Unsatisfiable) {
        return error;
    }
    let Ok((parsed, found)) = read(text, options, limits) else {
        return error;
    };
    if let Some(reason) = normal::explain(parsed, limits) {
        return CompileError::from(reason);
    }
    if report::narrowed(&found).next().is_some() {
        // Nothing clashes as far as the schema itself says, so what is left out might be what it asks for.
        let message = "only part of the schema is supported, and no value satisfies that part";
        return CompileError::from(Problem::new(
            ProblemKind::Limit,
            Place::Pointer(String::new()),
            message,
        ));
    }
    error
}

/// Stages 1 and 2: the text as a keyword tree whose references lead somewhere.
fn read(
    text: &str,
    options: &Options,
    limits: &Limits,
) -> Result<(parse::Parsed, Diagnostics), CompileError> {
    let mut held = limits.cancel.account();
    let texts = std::iter::once(text).chain(options.documents.iter().map(|(_, text)| &**text));
    let texts = texts.filter(|text| text.len() <= limits.source_bytes);
    if !held.grow(texts.map(source::bytes_of_value).sum()) {
        limits.cancel.unless(Ok::<_, CompileError>(()))?;
    }
    let root = source::read(text, limits)?;
    let documents = documents(options, limits)?;
    resolve::read(&root, &documents, options, limits)
}

fn documents(options: &Options, limits: &Limits) -> Result<Vec<(String, serde_json::Value)>, CompileError> {
    let mut values = Vec::with_capacity(options.documents.len());
    let mut problems = Vec::new();
    for (uri, text) in &options.documents {
        match source::read(text, limits) {
            Ok(value) => values.push((uri.clone(), value)),
            Err(problem) => {
                let message = format!("document {uri:?}: {problem}");
                problems.push(Problem::new(problem.kind, Place::Whole, message));
            }
        }
    }
    if problems.is_empty() {
        Ok(values)
    } else {
        Err(CompileError { problems })
    }
}
