//! Parsing expression grammars (PEGs) as the crate `pest` writes them.
//!
//! ```text
//!   list   = { SOI ~ item ~ ("," ~ item)* ~ EOI }      the start is the first rule, unless another is named
//!   item   = @{ ASCII_DIGIT+ | ^"none" | name }        `@`, `$`: no white space between parts; `^`: any case
//!   name   = _{ !"none" ~ 'a'..'z'{1,8} }              `_`: nothing for texts; `!` not here, `&` here
//!   WHITESPACE = _{ " " }                              between the parts of all other rules; also COMMENT
//! ```
//!
//! # What a text is
//!
//! A text belongs if the first rule reads all of it. pest reads from left to right: it keeps to the first
//! alternative that it can read, and repeats a part as often as it can. So `"a" | "ab"` never reads `ab`,
//! and `ANY* ~ "."` reads nothing at all. That is decided here in the same way within all parts that call no
//! recursive rule: they become expressions with look-around, where it matters ([`lowering`]). Around
//! recursive rules the reading is that of a context-free grammar: any alternative may be taken, and a
//! repetition may end earlier. All texts that pest reads are read here, and some of those that pest would
//! read in another way.
//!
//! * A look-ahead is decided exactly or refused: what it asks for must not be recursive, and what it looks
//!   at must not go on into a recursive part that could begin in this way.
//! * `SOI` may stand where the text begins. After `EOI`, only parts may stand that can be empty.
//! * `PUSH`, `POP`, `PEEK` and `DROP` use a stack, and are refused.
//! * Names of Unicode properties are those of pest, with the characters of the `regex-syntax` crate.
//! * A repetition takes no white space along after its last round. pest does so in `x+` and `x{,3}` where
//!   there are fewer rounds than could be, which matters at the end of a rule.
//! * `(a ~ b)* ~ a` is read as it is written. pest rewrites it as `a ~ (b ~ a)*`, which reads more.
//! * Beyond pest, rules may be left-recursive, and a part that may be empty may be repeated.

mod builtin;
mod comments;
mod expr;
mod facts;
mod first;
mod lowering;
mod order;
mod reader;
mod spaces;
mod tokens;

#[cfg(test)]
mod tests;

use super::lower::{Names, Problems, Tree};
use super::reading;
use super::reading::outline::{Lexis, Span};
use crate::suggest;
use facts::Work;
use lexiform_automata::error::{CompileError, ProblemKind};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;
use tokens::{Rule, Tokens, described};

/// The quotes, comments and brackets of the notation.
pub(super) const LEXIS: Lexis = Lexis {
    spans: &[
        Span::plain("//", "\n"),
        Span::escaped("\"", "\""),
        Span::escaped("'", "'"),
    ],
    open: b"(",
    close: b")",
};

/// Lowers a grammar for pest. `start` is the name of the rule that reads texts, if it is not the first one.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::notation::peg;
/// let cfg = peg::lower("list = { item ~ (\",\" ~ item)* } item = { 'a'..'z'+ }", None, &Limits::default());
/// assert!(cfg.is_ok());
/// let error = peg::lower("a = { PUSH(\"b\") ~ POP }", None, &Limits::default()).unwrap_err();
/// assert!(error.to_string().contains("column 7"));
/// ```
///
/// # Errors
/// Returns all problems of the grammar that do not hide one another.
pub fn lower(text: &str, start: Option<&str>, limits: &Limits) -> Result<Cfg, CompileError> {
    reading::read(text, limits, &LEXIS, |text| tree(text, start))
}

/// Reads a grammar for pest that was checked.
pub(super) fn tree<'t>(text: &'t str, start: Option<&str>) -> Result<Tree<'t>, CompileError> {
    let blanked = comments::blanked(text);
    let pairs = reading::parse::<Tokens, _>(Rule::grammar, &blanked, described, hint)?;
    let mut problems = Problems::default();
    let rules = reader::read(pairs, &mut problems);
    let start = match start {
        None => Some(0),
        Some(name) => {
            let found = rules.iter().position(|rule| rule.name == name);
            if found.is_none() {
                let meant = suggest::nearest(name, rules.iter().map(|rule| rule.name.as_str()));
                let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
                let message = format!("there is no rule `{name}`, with which texts begin{meant}");
                problems.add(ProblemKind::Reference, 0, message);
            }
            found
        }
    };
    let mut definitions = Vec::new();
    if let (Some(start), true) = (start, problems.is_empty()) {
        let work = Work::default();
        let rules = spaces::written_out(&rules, start, &work, &mut problems);
        if problems.is_empty() {
            definitions = lowering::definitions(&rules, &work, &mut problems);
        }
        if work.is_spent() {
            let message = "what is around the parts of this grammar takes too many steps to find";
            problems.add(ProblemKind::Limit, 0, message);
        }
    }
    Ok(Tree {
        text,
        definitions,
        starts: &[],
        names: Names::AsWritten,
        has_gaps: !problems.is_empty(),
        problems,
    })
}

/// Names what other notations allow, where a grammar does not parse.
fn hint(text: &str, offset: usize) -> Option<String> {
    let rest = text.get(offset..)?;
    let message = match rest.chars().next()? {
        '/' if rest.starts_with("/*") => "this `/*` is never closed",
        '/' => "alternatives are separated by `|`",
        ',' | '"' | '(' => "parts of a sequence are separated by `~`",
        '[' => "a range of characters is written `'a'..'z'`, an optional part `x?`",
        '.' => "any character is `ANY`",
        _ => return LEXIS.unclosed(text, offset),
    };
    match LEXIS.unclosed(text, offset) {
        Some(unclosed) => Some(unclosed),
        None => Some(message.to_owned()),
    }
}
