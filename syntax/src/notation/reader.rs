//! All notations of grammars by name, and how one is recognised.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::lark::{self, Dialect, Reading};
use super::{ebnf, recognise};
use crate::{schema, suggest};
use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;

/// A notation of grammars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notation {
    /// Lexiform's own EBNF.
    Ebnf,
    /// The notation of the lark parser.
    Lark,
    /// llguidance's dialect of the notation of the lark parser.
    Llguidance,
}

/// The options of grammars.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GrammarOptions {
    /// The notation; it is recognised if there is none.
    pub notation: Option<Notation>,
    /// The name of the rule that derives whole texts, if it is not that of the notation: `start` in Lark.
    pub start: Option<String>,
    /// The sources of the libraries that a grammar may import, by name.
    pub imports: BTreeMap<String, String>,
}

/// The names of all notations.
const NAMES: [(&str, Notation); 3] = [
    ("ebnf", Notation::Ebnf),
    ("lark", Notation::Lark),
    ("llguidance", Notation::Llguidance),
];

impl Notation {
    /// All notations.
    pub fn all() -> impl Iterator<Item = Notation> {
        NAMES.into_iter().map(|(_, notation)| notation)
    }

    /// Returns the name of the notation.
    pub fn name(self) -> &'static str {
        let row = NAMES.iter().find(|(_, notation)| *notation == self);
        row.map_or("", |(name, _)| name)
    }
}

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Notation {
    type Err = String;

    fn from_str(name: &str) -> Result<Notation, String> {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map(|&(_, notation)| notation).ok_or_else(|| {
            let names = NAMES.map(|(name, _)| name);
            match suggest::nearest(name, names.iter().copied()) {
                Some(near) => format!("unknown notation `{name}`; did you mean `{near}`?"),
                None => format!("unknown notation `{name}`; there are {}", names.join(", ")),
            }
        })
    }
}

/// Lowers a grammar in the notation that the options name, or in the one that is recognised.
///
/// # Errors
/// Returns all problems of the source with their places, and an error if two notations read it differently.
pub fn lower(
    text: &str,
    options: &GrammarOptions,
    schema: &schema::Options,
    limits: &Limits,
) -> Result<Cfg, CompileError> {
    match options.notation {
        Some(notation) => lower_as(text, notation, options, schema, limits),
        None => recognise::lower(text, options, schema, limits),
    }
}

/// Lowers a grammar in one notation.
pub(super) fn lower_as(
    text: &str,
    notation: Notation,
    options: &GrammarOptions,
    schema: &schema::Options,
    limits: &Limits,
) -> Result<Cfg, CompileError> {
    let dialect = match notation {
        Notation::Ebnf => {
            if let Some(start) = &options.start {
                let message = format!("the start of a grammar in {notation} is `root`, not `{start}`");
                return Err(Problem::new(ProblemKind::Unsupported, Place::Whole, message).into());
            }
            return ebnf::lower(text, limits);
        }
        Notation::Lark => Dialect::Lark,
        Notation::Llguidance => Dialect::Llguidance,
    };
    let reading = Reading {
        start: options.start.as_deref(),
        imports: &options.imports,
        schema: schema.clone(),
        limits,
        depth: 0,
    };
    lark::lower(text, dialect, &reading)
}
