//! Regular expressions, in three dialects, as languages of whole texts.
//!
//! ```text
//!   ECMA-262 pattern ─ ecma ───┐                          ┌─ Match, Not, Units (grammar::Regular)
//!   Rust / RE2 syntax ─ rust ──┼─► Node ─► whole, context ┤
//!   Python's re ─ python ──────┘    (with look-around)    └─ (without)
//!                                                            │ json
//!                                                            └─► the same, spelled inside a JSON string
//! ```
//!
//! [`ecma`] implements JSON Schema's `pattern`, which is found *anywhere* in the text. [`lower`], [`whole`]
//! and [`rust`] match the *whole* text. Matching priorities do not affect a language, so lazy quantifiers
//! mean the same as greedy ones.

mod context;
mod cursor;
mod determinise;
mod ecma;
mod edge;
mod eliminate;
mod error;
mod json;
mod language;
mod look;
pub(crate) mod node;
pub(crate) mod python;
pub(crate) mod rust;
pub(crate) mod whole;

pub use error::RegexError;
pub use json::{Escapes, encode_json, json_char, json_string_body};
pub(crate) use json::{one_char, string_body};

use lexiform_automata::error::CompileError;
use lexiform_automata::grammar::{Cfg, CfgBuilder, Regular};
use lexiform_automata::limits::Limits;

/// The deepest nesting of groups in a regular expression, whatever `nesting` allows: automata are built from
/// the expression by recursion.
pub(crate) const MOST_NESTING: usize = 250;

/// The greatest length in bytes of an expression that regex-syntax parses, whatever `source_bytes` allows:
/// regex-syntax has no limit, and `\pL` becomes five thousand bytes.
const LONGEST_PATTERN: usize = 1 << 16;

/// The greatest length in bytes of an expression that our own parsers read, whatever `source_bytes` allows.
const LONGEST_OWN: usize = 1 << 20;

/// The notation of a regular expression that a whole text must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The syntax of Rust's `regex` crate, which is nearly that of RE2.
    #[default]
    Rust,
    /// ECMA-262, the syntax of JavaScript, with the meaning of its flag `u`.
    Ecma,
    /// The syntax of Python's `re` module, for `str` patterns. Backreferences, atomic groups, possessive
    /// quantifiers, conditionals and the flags `a` and `L` are refused by name. The tables
    /// of the `regex-syntax` crate decide which characters are letters and digits; they may follow a later
    /// version of Unicode than a given interpreter.
    Python,
}

/// Returns the language of the texts in which an ECMA-262 pattern is found, as JSON Schema's `pattern` means
/// it.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::regex;
/// let regular = regex::ecma(r"^(?!tmp)[a-z]+$", &Limits::default()).unwrap();
/// assert_eq!(regular.parts.len(), 2);
/// let error = regex::ecma(r"(a)\1", &Limits::default()).unwrap_err();
/// assert_eq!(error.column, Some(4));
/// ```
pub fn ecma(pattern: &str, limits: &Limits) -> Result<Regular, RegexError> {
    check_length(pattern, limits.source_bytes.min(LONGEST_OWN))?;
    let node = ecma::parse(pattern, limits.nesting.min(MOST_NESTING))?;
    whole::search(node, limits.regular_states as u64)
}

/// Returns the language of the texts that an expression in the syntax of Rust's `regex` matches as a whole.
pub fn rust(pattern: &str, limits: &Limits) -> Result<Regular, RegexError> {
    whole(pattern, Dialect::Rust, limits)
}

/// Returns the language of the texts that an expression in the given dialect matches as a whole.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform::regex::Dialect;
/// use lexiform_syntax::regex::whole;
/// let limits = Limits::default();
/// assert!(whole(r"(?P<day>\d{,2})\Z", Dialect::Python, &limits).is_ok());
/// assert!(whole(r"(?P<day>\d{,2})\Z", Dialect::Ecma, &limits).is_err());
/// assert!(whole(r"(?!0)\d+", Dialect::Ecma, &limits).is_ok());
/// ```
pub fn whole(pattern: &str, dialect: Dialect, limits: &Limits) -> Result<Regular, RegexError> {
    whole::whole(parse(pattern, dialect, limits)?, limits.regular_states as u64)
}

/// Parses an expression whose groups nest at most so deep.
type Parse = fn(&str, usize) -> Result<node::Node, RegexError>;

/// Parses an expression in the given dialect; the result may contain look-around.
pub(crate) fn parse(pattern: &str, dialect: Dialect, limits: &Limits) -> Result<node::Node, RegexError> {
    let (parse, longest): (Parse, usize) = match dialect {
        Dialect::Rust => (rust::parse, LONGEST_PATTERN),
        Dialect::Ecma => (ecma::parse, LONGEST_OWN),
        Dialect::Python => (python::parse, LONGEST_OWN),
    };
    check_length(pattern, limits.source_bytes.min(longest))?;
    parse(pattern, limits.nesting.min(MOST_NESTING))
}

/// Returns the grammar of the texts that an expression in the syntax of Rust's `regex` matches as a whole.
pub fn lower(pattern: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    lower_as(pattern, Dialect::Rust, limits)
}

/// Returns the grammar of the texts that an expression in the given dialect matches as a whole.
pub fn lower_as(pattern: &str, dialect: Dialect, limits: &Limits) -> Result<Cfg, CompileError> {
    let limits = &*limits.begin();
    let regular = limits
        .cancel
        .unless(whole(pattern, dialect, limits).map_err(RegexError::into_problem))?;
    let mut builder = CfgBuilder::new();
    let start = builder.declare("");
    let regular = builder.add_regular(regular);
    let body = builder.regular(regular);
    builder.define(start, body);
    Ok(builder.finish(start))
}

fn check_length(pattern: &str, longest: usize) -> Result<(), RegexError> {
    if pattern.len() <= longest {
        return Ok(());
    }
    let length = pattern.len();
    Err(RegexError::limit(format!(
        "the pattern has {length} bytes; the limit `source_bytes` is {longest}"
    )))
}

#[cfg(test)]
mod tests;
