//! Compiles a JSON Schema to a grammar of JSON texts.
//!
//! ```text
//!   text ─parse, resolve─► keyword tree ─normal─► normal forms ─lower─► Cfg
//! ```
//!
//! * `parse` reads the text within the limits and builds the keyword tree, which is the same for all drafts;
//! * `resolve` resolves every reference to a node;
//! * `normal` is an algebra: for each JSON type, a union of conjunctions, closed under intersection and
//!   complement;
//! * `lower` writes the normal forms as a grammar, in the spelling that the options select.
//!
//! A keyword is enforced exactly, or fewer values are allowed than it says and a finding reports this, or it
//! is refused with its JSON pointer; nothing is widened. [`report`] lists the outcome for every assertion,
//! [`Options::refuse`] refuses the second kind, and [`normal_form`] prints what the algebra made of a schema.
//! A JSON text belongs to the grammar if its value is valid and its spelling is one that the [`Options`]
//! allow; where values are compared, some spellings are left out, such as `10e-1` for an integer
//! ([`Enforced::Spelled`]), but each value keeps at least one. Exponents are written up to the range of a
//! 64-bit floating-point number, so that no parser that uses doubles reads a number as infinity.
//!
//! ```
//! use lexiform::limits::Limits;
//! use lexiform_syntax::schema;
//! let text = r#"{"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}}"#;
//! assert!(schema::lower(text, &schema::Options::default(), &Limits::default()).is_ok());
//!
//! let text = r#"{"properties": {"age": {"minimum": "zero"}}}"#;
//! let error = schema::lower(text, &schema::Options::default(), &Limits::default()).unwrap_err();
//! assert_eq!(error.to_string(), "#/properties/age/minimum: `minimum` must be a number, not \"zero\"");
//! ```

mod decimal;
mod draft;
mod findings;
mod finish;
mod forms;
mod lower;
mod node;
mod normal;
mod options;
mod parse;
mod report;
mod resolve;
mod shape;
pub mod sketch;
pub(crate) mod text;

pub(crate) use decimal::Decimal;
pub use draft::Draft;
pub(crate) use forms::{
    AdditionalClass, Array, Bound, GoalId, Normal, NormalForms, NumberShape, Object, StringShape, Way,
};
pub(crate) use lower::frame;
pub(crate) use node::{Keyword, NodeId, escape_segment};
pub use options::{
    AdditionalProperties, ArgumentStyle, Formats, KeyOrder, Numbers, Options, Refuse, Whitespace,
};
pub(crate) use parse::source::read as read_json;
pub use parse::{is_lost_assertion, is_meant_to_assert, is_unknown_format};
pub use report::{Assertion, Enforced, Inclusion, Report, inclusion, normal_form, report};
#[cfg(test)]
pub(crate) use text::hir::own_expression;
pub(crate) use text::{TextId, TextSource};

use lexiform_automata::error::{CompileError, Diagnostics, Place, Problem, ProblemKind};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;

use resolve::read;

/// Compiles a schema to a grammar.
///
/// # Errors
/// Returns all problems of the schema; if no value satisfies it, the assertions that contradict each other.
/// With [`Options::refuse`], also returns findings that would not stop the compilation.
pub fn lower(text: &str, options: &Options, limits: &Limits) -> Result<(Cfg, Diagnostics), CompileError> {
    let limits = &*limits.begin();
    limits.cancel.unless(lowered(text, options, limits))
}

fn lowered(text: &str, options: &Options, limits: &Limits) -> Result<(Cfg, Diagnostics), CompileError> {
    let (parsed, mut diagnostics) = read(text, options, limits)?;
    let forms = normal::normalise(parsed, options, limits)?;
    let (cfg, notes) =
        lower::grammar(&forms, options, limits).map_err(|error| explained(error, text, options, limits))?;
    for note in forms.notes.iter().cloned().chain(notes) {
        diagnostics.push(note);
    }
    let problems = refused(&diagnostics, options.refuse);
    match problems.is_empty() {
        true => Ok((cfg, diagnostics)),
        false => Err(CompileError { problems }),
    }
}

/// Returns the normal forms of a schema.
///
/// # Errors
/// Returns all problems of the schema.
pub(crate) fn normal_forms(
    text: &str,
    options: &Options,
    limits: &Limits,
) -> Result<NormalForms, CompileError> {
    let limits = &*limits.begin();
    let forms =
        read(text, options, limits).and_then(|(parsed, _)| normal::normalise(parsed, options, limits));
    limits.cancel.unless(forms)
}

/// Returns the findings that are refused, in the order of the schema.
fn refused(diagnostics: &Diagnostics, refuse: Refuse) -> Vec<Problem> {
    let (name, is_refused): (&str, fn(&Problem) -> bool) = match refuse {
        Refuse::Nothing => return Vec::new(),
        Refuse::Ineffective => ("strict", is_lost_assertion),
        Refuse::Inexact => ("exact", |finding| {
            finding.kind == ProblemKind::Narrowed || is_lost_assertion(finding) || is_unknown_format(finding)
        }),
    };
    let found = diagnostics.findings.iter().filter(|finding| is_refused(finding));
    let problem = |finding: &Problem| match finding.kind {
        ProblemKind::Narrowed => finding.clone(),
        _ => Problem {
            kind: ProblemKind::Unsupported,
            message: format!("{}; with `{name}` it must have one", finding.message),
            ..finding.clone()
        },
    };
    found.map(problem).collect()
}

/// Returns the error for a schema that no value satisfies, with the assertions that contradict each other
/// where they can be found.
#[doc(hidden)]
pub fn explained(error: CompileError, text: &str, options: &Options, limits: &Limits) -> CompileError {
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
        // The schema itself contains no contradiction, so the part that is left out might contain the
        // required values.
        let message = "only part of the schema is supported, and no value satisfies that part";
        return CompileError::from(Problem::new(
            ProblemKind::Limit,
            Place::Pointer(String::new()),
            message,
        ));
    }
    error
}
