//! What the readers of all notations share: the checks before a parser runs, its errors, and the way from a
//! text to a grammar.
//!
//! ```text
//!   text ─► check (size, nesting, memory) ─► parse ─► the reader's tree ─► lower ─► terminals
//! ```

pub(super) mod counts;
pub(super) mod outline;
pub(super) mod pairs;
pub(super) mod spelling;
#[cfg(test)]
pub(super) mod tests;

use pest::error::{ErrorVariant, InputLocation, LineColLocation};
use pest::iterators::Pairs;
use pest::{Parser, RuleType};

use super::lower::{self, Tree};
use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::{Account, Limits};
use outline::{Lexis, Outline};

/// The deepest nesting of brackets, whatever `nesting` allows: the parsers recurse.
const MOST_BRACKETS: usize = 250;

/// Reads a source in a notation whose quotes, comments and brackets are as `lexis` says. `tree` parses it.
///
/// # Errors
/// Returns all problems of the source that do not hide one another.
pub(super) fn read<'t>(
    text: &'t str,
    limits: &Limits,
    lexis: &Lexis,
    tree: impl FnOnce(&'t str) -> Result<Tree<'t>, CompileError>,
) -> Result<Cfg, CompileError> {
    let limits = &*limits.begin();
    checked(text, limits, lexis, || {
        tree(text).and_then(|tree| lower::lower(tree, limits))
    })
}

/// Does something with a source after the checks that come before a parser.
///
/// # Errors
/// Returns the errors of the checks and of what is done.
pub(super) fn checked<R>(
    text: &str,
    limits: &Limits,
    lexis: &Lexis,
    then: impl FnOnce() -> Result<R, CompileError>,
) -> Result<R, CompileError> {
    let _held = check(text, limits, |text, deepest| lexis.outline(text, deepest))?;
    let done = then();
    limits.cancel.unless(done)
}

/// Checks what must hold before a parser runs, and returns the account of the memory that its tree will take.
///
/// # Errors
/// Returns an error if the source is too long, nests too deeply, is blank, or does not fit into memory.
pub(super) fn check(
    text: &str,
    limits: &Limits,
    outline: impl FnOnce(&str, usize) -> Outline,
) -> Result<Account, CompileError> {
    if text.len() > limits.source_bytes {
        let message = format!(
            "the source has {} bytes; the limit `source_bytes` is {}",
            text.len(),
            limits.source_bytes
        );
        return Err(Problem::new(ProblemKind::Limit, Place::Whole, message).into());
    }
    let deepest = limits.nesting.min(MOST_BRACKETS);
    let outline = outline(text, deepest);
    if let Some(offset) = outline.too_deep {
        let message = format!("brackets nest too deeply; the limit `nesting` is {deepest}");
        return Err(Problem::new(ProblemKind::Limit, Place::in_text(text, offset), message).into());
    }
    if text.trim().is_empty() {
        let message = "the grammar is empty; it needs a rule, such as `root ::= \"yes\" | \"no\"`";
        return Err(Problem::new(ProblemKind::Syntax, Place::Whole, message).into());
    }
    let mut held = limits.cancel.account();
    if !held.grow(outline.bytes_of_tree) {
        limits.cancel.unless(Ok::<_, CompileError>(()))?;
    }
    Ok(held)
}

/// Parses a source. `described` names the rules of the parser in messages, and `hint` may know more about the
/// text at the offset where the parser gave up.
///
/// # Errors
/// Returns an error with the place up to which the source could be read, and what was expected there.
pub(super) fn parse<'t, P: Parser<R>, R: RuleType>(
    rule: R,
    text: &'t str,
    described: fn(R) -> &'static str,
    hint: impl FnOnce(&str, usize) -> Option<String>,
) -> Result<Pairs<'t, R>, CompileError> {
    P::parse(rule, text).map_err(|error| {
        let (line, column) = match error.line_col {
            LineColLocation::Pos(place) | LineColLocation::Span(place, _) => place,
        };
        let offset = match error.location {
            InputLocation::Pos(offset) | InputLocation::Span((offset, _)) => offset,
        };
        let message = hint(text, offset).unwrap_or_else(|| match error.variant {
            ErrorVariant::ParsingError { positives, .. } => expected(&positives, described),
            ErrorVariant::CustomError { message } => message,
        });
        Problem::new(ProblemKind::Syntax, Place::LineColumn { line, column }, message).into()
    })
}

fn expected<R: RuleType>(rules: &[R], described: fn(R) -> &'static str) -> String {
    let mut names: Vec<&str> = rules.iter().map(|&rule| described(rule)).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => "cannot parse this".into(),
        [name] => format!("expected {name}"),
        [names @ .., last] => format!("expected {} or {last}", names.join(", ")),
    }
}
