//! How a source is read.

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
