//! EBNF grammars, in a dialect in which users of the W3C's notation and of GBNF are at home.
//!
//! ```text
//! # JSON lists of numbers. A comment: also // …, /* … */ and (* … *).
//! root   ::= "[" ws (number ("," ws number)*)? "]"      every character counts; there is no implicit white space
//! number ::= "-"? [0-9]+ ("." [0-9]{1,4})?             [a-z] a class, [^…] its complement, . any character
//! ws     ::= [ \t\n]* | #x20 | 'single quotes'          #x20 the character with this number
//! date    =  /\d{4}-\d\d-\d\d/ ;                        a regular expression, matched as a whole; /…/i with flags
//! list    :  item { "," item } , <|end|>                { … } any number of times; <|end|> a special token
//! ```
//!
//! * What ISO 14977, Lark, ABNF or Wirth's notation write alike and mean otherwise is refused, with how it is
//!   written here (`ebnf/misread.rs`, `ebnf/foreign.rs`).
//! * A rule is `name ::= …`, `name := …`, `name = …` or `name: …`; a `;` may end it. The start is the rule
//!   `root`, or else `start`, or else the first one.
//! * Alternatives are split by `|`; one may be empty. Parts stand side by side, with a `,` between them if
//!   one likes.
//! * Behind a part: `?`, `*`, `+`, `{n}`, `{n,}`, `{,m}`, `{n,m}`. Braces with anything but counts repeat
//!   what is inside. Brackets are always a class; what is optional is written `( … )?`.
//! * In quotes and classes: `\n \r \t \b \f \v \0`, `\xNN`, `\uNNNN` (also as a surrogate pair),
//!   `\UNNNNNNNN`, `\u{N…}` and a backslash before punctuation. `\xNN` is a character number, not a byte.
//! * Left recursion, ambiguity and rules that match nothing are all allowed.
//!
//! All problems that do not hide one another are reported at once, each with its line and column.

mod escape;
mod foreign;
mod lexemes;
mod lowering;
mod misread;
mod nesting;
mod size;
mod tokens;

use pest::Parser;
use pest::error::{ErrorVariant, InputLocation, LineColLocation};

use crate::notation::terminals;
use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;
use tokens::{Rule, Tokens, described};

/// Brackets nest at most this deep, whatever `nesting` allows: the parser recurses.
const MOST_BRACKETS: usize = 250;

/// Reads an EBNF grammar; its regular parts become terminals, whose masks grammars share.
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

/// The same with every rule as it is written: the same language, for those who look at its rules, or judge
/// the other.
///
/// # Errors
/// Those of [`lower`].
pub fn as_written(text: &str, limits: &Limits) -> Result<Cfg, CompileError> {
    let limits = &*limits.begin();
    if text.len() > limits.source_bytes {
        let message = format!(
            "the source has {} bytes; the limit `source_bytes` is {}",
            text.len(),
            limits.source_bytes
        );
        return Err(Problem::new(ProblemKind::Limit, Place::Whole, message).into());
    }
    let deepest = limits.nesting.min(MOST_BRACKETS);
    if let Some(offset) = nesting::deeper_than(text, deepest) {
        let message = format!("brackets nest too deeply; the limit `nesting` is {deepest}");
        return Err(Problem::new(ProblemKind::Limit, Place::in_text(text, offset), message).into());
    }
    if text.trim().is_empty() {
        let message = "the grammar is empty; it needs a rule, such as `root ::= \"yes\" | \"no\"`";
        return Err(Problem::new(ProblemKind::Syntax, Place::Whole, message).into());
    }
    let mut held = limits.cancel.account();
    if !held.grow(size::bytes_of_tree(text)) {
        limits.cancel.unless(Ok::<_, CompileError>(()))?;
    }
    let mut grammar = Tokens::parse(Rule::grammar, text).map_err(|error| syntax_error(error, text))?;
    let definitions = grammar
        .next()
        .into_iter()
        .flat_map(pest::iterators::Pair::into_inner);
    let definitions = definitions.filter(|pair| pair.as_rule() == Rule::definition);
    limits.cancel.unless(lowering::lower(text, definitions, limits))
}

/// What the parser says, or, where the text is of another notation, how that is written here.
fn syntax_error(error: pest::error::Error<Rule>, text: &str) -> CompileError {
    let (line, column) = match error.line_col {
        LineColLocation::Pos(place) | LineColLocation::Span(place, _) => place,
    };
    let offset = match error.location {
        InputLocation::Pos(offset) | InputLocation::Span((offset, _)) => offset,
    };
    let message = foreign::hint(text, offset).unwrap_or_else(|| match error.variant {
        ErrorVariant::ParsingError { positives, .. } => expected(&positives),
        ErrorVariant::CustomError { message } => message,
    });
    Problem::new(ProblemKind::Syntax, Place::LineColumn { line, column }, message).into()
}

fn expected(rules: &[Rule]) -> String {
    let mut names: Vec<&str> = rules.iter().map(|&rule| described(rule)).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => "cannot parse this".into(),
        [name] => format!("expected {name}"),
        [names @ .., last] => format!("expected {} or {last}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests;
