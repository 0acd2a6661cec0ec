//! All notations of grammars by name.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::notation::lark::{self, Dialect, Reading};
use crate::notation::lower::Tree;
use crate::notation::reading::checked;
use crate::notation::reading::outline::Lexis;
use crate::notation::{abnf, ebnf, gbnf, iso, peg, w3c, xgrammar};
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
    /// The notation of llama.cpp.
    Gbnf,
    /// The notation of the lark parser.
    Lark,
    /// llguidance's dialect of the notation of the lark parser.
    Llguidance,
    /// The EBNF of XGrammar.
    XGrammar,
    /// The EBNF of the W3C, as in the specification of XML.
    W3c,
    /// The EBNF of ISO/IEC 14977.
    Iso,
    /// The ABNF of RFC 5234 and RFC 7405.
    Abnf,
    /// The PEGs of the crate pest.
    Pest,
}

/// The options of grammars.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GrammarOptions {
    /// The notation; it is recognised if there is none.
    pub notation: Option<Notation>,
    /// The name of the rule that derives whole texts, if it is not that of the notation: `start` in
    /// Lark, the first rule for pest. The other notations have no choice.
    pub start: Option<String>,
    /// The sources of the libraries that a grammar may import, by name.
    pub imports: BTreeMap<String, String>,
}

/// The names of all notations.
const NAMES: [(&str, Notation); 9] = [
    ("ebnf", Notation::Ebnf),
    ("gbnf", Notation::Gbnf),
    ("lark", Notation::Lark),
    ("llguidance", Notation::Llguidance),
    ("xgrammar", Notation::XGrammar),
    ("w3c", Notation::W3c),
    ("iso", Notation::Iso),
    ("abnf", Notation::Abnf),
    ("pest", Notation::Pest),
];

/// Reads a grammar that was checked, in a notation without options.
type ReadTree = for<'t> fn(&'t str) -> Result<Tree<'t>, CompileError>;

/// Lowers a grammar in a notation without options.
type Lower = fn(&str, &Limits) -> Result<Cfg, CompileError>;

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

/// Lowers a grammar in one notation.
pub(in crate::notation) fn lower_as(
    text: &str,
    notation: Notation,
    options: &GrammarOptions,
    schema: &schema::Options,
    limits: &Limits,
) -> Result<Cfg, CompileError> {
    let plain: Lower = match notation {
        Notation::Lark | Notation::Llguidance => return lark(text, notation, options, schema, limits),
        Notation::Ebnf => ebnf::lower,
        Notation::Gbnf => gbnf::lower,
        Notation::XGrammar => xgrammar::lower,
        Notation::W3c => w3c::lower,
        Notation::Iso => iso::lower,
        Notation::Abnf => abnf::lower,
        Notation::Pest => {
            import_nothing(notation, options)?;
            return peg::lower(text, options.start.as_deref(), limits);
        }
    };
    if let Some(start) = &options.start {
        return Err(refused(format!(
            "the start of a grammar in {notation} cannot be set, to `{start}` or otherwise"
        )));
    }
    import_nothing(notation, options)?;
    plain(text, limits)
}

fn refused(message: String) -> CompileError {
    Problem::new(ProblemKind::Unsupported, Place::Whole, message).into()
}

/// Refuses libraries for a notation without imports.
fn import_nothing(notation: Notation, options: &GrammarOptions) -> Result<(), CompileError> {
    match options.imports.is_empty() {
        true => Ok(()),
        false => Err(refused(format!("grammars in {notation} import nothing"))),
    }
}

fn lark(
    text: &str,
    notation: Notation,
    options: &GrammarOptions,
    schema: &schema::Options,
    limits: &Limits,
) -> Result<Cfg, CompileError> {
    let (dialect, reading) = reading_of(notation, options, schema, limits);
    lark::lower(text, dialect, &reading)
}

fn reading_of<'a>(
    notation: Notation,
    options: &'a GrammarOptions,
    schema: &schema::Options,
    limits: &'a Limits,
) -> (Dialect, Reading<'a>) {
    let dialect = match notation {
        Notation::Llguidance => Dialect::Llguidance,
        _ => Dialect::Lark,
    };
    let reading = Reading {
        start: options.start.as_deref(),
        imports: &options.imports,
        schema: schema.clone(),
        limits,
        depth: 0,
    };
    (dialect, reading)
}

/// Does something with the tree of a grammar that can be lowered.
///
/// # Errors
/// Returns the errors of what is done.
pub(in crate::notation) fn with_tree<R>(
    text: &str,
    notation: Notation,
    options: &GrammarOptions,
    schema: &schema::Options,
    limits: &Limits,
    then: impl FnOnce(Tree<'_>) -> Result<R, CompileError>,
) -> Result<R, CompileError> {
    let (lexis, tree): (&Lexis, ReadTree) = match notation {
        Notation::Lark | Notation::Llguidance => {
            let (dialect, reading) = reading_of(notation, options, schema, limits);
            return then(lark::tree(text, dialect, &reading));
        }
        Notation::Ebnf => return ebnf::with_tree(text, limits, then),
        Notation::XGrammar => {
            return checked(text, limits, &xgrammar::LEXIS, || {
                then(xgrammar::tree(text, limits)?)
            });
        }
        Notation::Pest => {
            return checked(text, limits, &peg::LEXIS, || {
                then(peg::tree(text, options.start.as_deref())?)
            });
        }
        Notation::Gbnf => (&gbnf::LEXIS, gbnf::tree),
        Notation::W3c => (&w3c::LEXIS, w3c::tree),
        Notation::Iso => (&iso::LEXIS, iso::tree),
        Notation::Abnf => (&abnf::LEXIS, abnf::tree),
    };
    checked(text, limits, lexis, || then(tree(text)?))
}
