//! Grammars for the lark parser, and in llguidance's dialect of its notation.
//!
//! ```text
//!   start: "let" NAME "=" sum ";"          names of rules begin with a small letter, of terminals with a capital
//!   ?sum: product (("+" | "-") product)*   `?`, `!`, priorities and `-> aliases` change no text
//!   product: atom~1..3 | "(" sum ")"       `~` counts; `[x]` is `x` or nothing
//!   list{x}: x ("," x)*                    a template, used as `list{sum}`
//!   NAME: /[a-z_]\w*/i                     an expression of Python's `re`
//!   %import common.WS                      `common` is built in, other libraries are given with the source
//!   %ignore WS                             may stand before, between and after terminals
//! ```
//!
//! A terminal is one word; an expression with a lazy quantifier ends as soon as it can. llguidance's dialect
//! differs from that of the lark parser: expressions are those of Rust's `regex`, ignored texts do not come
//! first, `{2,4}` counts, and there are tokens (`<|name|>`, `<[5-9]>`), `%json`, `%regex`, `%lark`, `&`,
//! `~`, the attributes `lazy`, `stop` and `suffix`, and rules with a number as their parameter (`name::0`).
//!
//! # What a text is
//!
//! The language is that of the rules over characters: wherever a word may end, the next one may begin. Where
//! two words may begin, a text belongs to one of them, as the lexers of both engines decide it: a keyword is
//! no name, nothing goes on over the end of a lazy word ([`contexts`]), and a word does not end where it
//! could go on ([`longest`]): `notx` is one name, and not `not` and `x`. Words are told apart
//! by their uses in rules, so a use that stands in two places has the words of both.

mod assemble;
mod atoms;
mod attributes;
mod contexts;
mod expand;
mod indentation;
mod items;
mod lines;
mod longest;
mod parser;
mod reading;
mod scanner;
mod settle;
mod spacing;
mod words;

pub use reading::{Dialect, Reading};

use crate::notation::lower::{Tree, lower as lower_tree};
use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::grammar::Cfg;

/// Lowers a grammar. Its regular parts become terminals, whose masks are shared between grammars.
///
/// # Errors
/// Returns all problems of the source with their places.
pub fn lower(text: &str, dialect: Dialect, reading: &Reading<'_>) -> Result<Cfg, CompileError> {
    let limits = &*reading.limits.begin();
    let most = limits.source_bytes;
    if text.len() > most {
        let message = format!(
            "the source has {} bytes; the limit `source_bytes` is {most}",
            text.len()
        );
        return Err(Problem::new(ProblemKind::Limit, Place::Whole, message).into());
    }
    let reading = &Reading {
        limits,
        ..reading.clone()
    };
    lower_tree(tree(text, dialect, reading), limits)
}

/// Reads a grammar that is not too long.
pub(super) fn tree<'t>(text: &'t str, dialect: Dialect, reading: &Reading<'_>) -> Tree<'t> {
    assemble::tree(text, dialect, reading)
}
