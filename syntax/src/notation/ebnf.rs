//! EBNF grammars, in a dialect that is familiar to users of the W3C's notation and of GBNF.
//!
//! ```text
//! # JSON lists of numbers. A comment: also // …, /* … */ and (* … *).
//! root   ::= "[" ws (number ("," ws number)*)? "]"      no implicit white space: every character counts
//! number ::= "-"? [0-9]+ ("." [0-9]{1,4})?             [a-z] a class, [^…] its complement, . any character
//! ws     ::= [ \t\n]* | #x20 | 'single quotes'          #x20 the character with this number
//! date    =  /\d{4}-\d\d-\d\d/ ;                        a regular expression for a whole part; /…/i with flags
//! list    :  item { "," item } , <|end|>                { … } any number of times; <|end|> a special token
//! ```
//!
//! * Constructs of ISO 14977, Lark, ABNF or Wirth's notation that look the same but mean something else are
//!   refused, with the way to write them here (`ebnf/misread.rs`, `ebnf/foreign.rs`).
//! * A rule is `name ::= …`, `name := …`, `name = …` or `name: …`; a `;` may end it. The start is the rule
//!   `root`, or else `start`, or else the first one.
//! * Alternatives are separated by `|`; one may be empty. Parts are written side by side, optionally with a
//!   `,` between them.
//! * After a part: `?`, `*`, `+`, `{n}`, `{n,}`, `{,m}`, `{n,m}`. Braces with anything but counts repeat
//!   their content. Brackets are always a class; an optional part is written `( … )?`.
//! * In quotes and classes: `\n \r \t \b \f \v \0`, `\xNN`, `\uNNNN` (also as a surrogate pair),
//!   `\UNNNNNNNN`, `\u{N…}` and a backslash before punctuation. `\xNN` is a character number, not a byte.
//! * Left recursion, ambiguity and rules that match nothing are all allowed.
//!
//! All problems that do not hide one another are reported at once, each with its line and column.

mod foreign;
mod lexemes;
mod misread;
mod nesting;
mod reader;
mod size;
mod tokens;

use crate::notation::lower::Problems;
use crate::notation::lower::{self, Names, Tree};
use crate::notation::reading::{self, outline::Outline};
use crate::notation::terminals;
use lexiform_automata::error::CompileError;
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;
use tokens::{Rule, Tokens, described};

/// Lowers an EBNF grammar. Its regular parts become terminals, whose masks are shared between grammars.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::notation::ebnf;
/// let cfg = ebnf::lower(r#"list ::= "[" (item ("," item)*)? "]"  item ::= [0-9]+ | list"#, &Limits::default());
/// assert_eq!(cfg.unwrap().rules.len(), 2);
/// let error = ebnf::lower("a ::= b\nc ::= a d", &Limits::default()).unwrap_err();
/// assert_eq!(error.problems.len(), 2);
/// ```
pub fn lower(text: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    let limits = &*limits.begin();
    let cfg = as_written(text, limits)?;
    limits
        .cancel
        .unless(Ok::<_, CompileError>(terminals::lay(cfg, limits)))
}

/// Lowers an EBNF grammar without turning its regular parts into terminals: every rule stays as it is
/// written. The language is the same as for [`lower`]. This is for inspecting the rules, and for testing
/// `lower`.
///
/// # Errors
/// Returns the same errors as [`lower`].
pub fn as_written(text: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    let limits = &*limits.begin();
    let (cfg, _) = with_tree(text, limits, |tree| {
        limits.cancel.unless(lower::as_written(tree, limits))
    })?;
    Ok(cfg)
}

/// Does something with the tree of an EBNF grammar.
///
/// # Errors
/// Returns an error if the source cannot be parsed, and the errors of what is done.
pub(super) fn with_tree<R>(
    text: &str,
    limits: &Limits,
    then: impl FnOnce(Tree<'_>) -> Result<R, CompileError>,
) -> Result<R, CompileError> {
    let _held = reading::check(text, limits, outline)?;
    let mut grammar = reading::parse::<Tokens, _>(Rule::grammar, text, described, foreign::hint)?;
    let definitions = grammar
        .next()
        .into_iter()
        .flat_map(pest::iterators::Pair::into_inner);
    let definitions = definitions.filter(|pair| pair.as_rule() == Rule::definition);
    let mut problems = Problems::default();
    for (offset, message) in misread::find(text) {
        problems.unsupported(offset, message);
    }
    let definitions = reader::read(definitions, limits, &mut problems);
    then(Tree {
        text,
        definitions,
        starts: &["root", "start"],
        names: Names::AsWritten,
        problems,
        has_gaps: false,
    })
}

fn outline(text: &str, deepest: usize) -> Outline {
    Outline {
        too_deep: nesting::deeper_than(text, deepest),
        bytes_of_tree: size::bytes_of_tree(text),
    }
}

#[cfg(test)]
mod tests;
