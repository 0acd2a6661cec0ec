//! How a source is read, and the library that `%import common.…` names: terminals that grammars have in
//! common.

use std::collections::BTreeMap;

use crate::schema;
use lexiform_automata::limits::Limits;

/// Whose notation a source is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// That of the lark parser.
    Lark,
    /// That of llguidance.
    Llguidance,
}

/// How a source is read.
#[derive(Clone, Debug)]
pub struct Reading<'a> {
    /// The name of the rule that derives whole texts; `start` if there is none.
    pub start: Option<&'a str>,
    /// The sources of libraries by name: `tokens` for `%import .tokens.NAME`.
    pub imports: &'a BTreeMap<String, String>,
    /// How schemas after `%json` are read.
    pub schema: schema::Options,
    /// The limits on the cost.
    pub limits: &'a Limits,
    /// How many sources this one is within.
    pub depth: usize,
}

/// The terminals of `common`, in this notation. The names and their languages are those of the library of
/// the lark parser.
pub(super) const COMMON: &str = r##"
DIGIT: /[0-9]/
HEXDIGIT: /[0-9a-fA-F]/
INT: /[0-9]+/
SIGNED_INT: /[+-]?[0-9]+/
DECIMAL: /[0-9]+\.[0-9]*|\.[0-9]+/
_EXP: /[eE][+-]?[0-9]+/
FLOAT: /[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?/
SIGNED_FLOAT: /[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)/
NUMBER: /[0-9]+|[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?/
SIGNED_NUMBER: /[+-]?([0-9]+|[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)/
_STRING_INNER: /.*?/
_STRING_ESC_INNER: /([^\n]*[^\\\n])?(\\\\)*/
ESCAPED_STRING: /"([^"\\\n]|\\[^\n])*"/
LCASE_LETTER: /[a-z]/
UCASE_LETTER: /[A-Z]/
LETTER: /[a-zA-Z]/
WORD: /[a-zA-Z]+/
CNAME: /[a-zA-Z_][a-zA-Z0-9_]*/
WS_INLINE: /[ \t]+/
WS: /[ \t\f\r\n]+/
CR: /\r/
LF: /\n/
NEWLINE: /(\r?\n)+/
SH_COMMENT: /#[^\n]*/
CPP_COMMENT: /\/\/[^\n]*/
C_COMMENT: /\/\*([^*]|\*+[^*\/])*\*+\//
SQL_COMMENT: /--[^\n]*/
"##;

/// Returns the source of a library that is built in.
pub(super) fn built_in(path: &[String]) -> Option<&'static str> {
    match path {
        [name] if name == "common" => Some(COMMON),
        _ => None,
    }
}
