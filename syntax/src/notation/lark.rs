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
//! first, `{2,4}` counts, and there are tokens (`<|name|>`, `<[5-9]>`), `%json`, `%regex`, `%lark`, `&`, `~`,
//! the attributes `lazy`, `stop` and `suffix`, and rules with a number as their parameter (`name::0`).
//!
//! # What a text is
//!
//! The language is that of the rules over characters: wherever a terminal may end, the next one may begin.
//! The lark parser first splits a text into terminals, each as long as it can be. It reads `notx` as one
//! name where a rule says `"not" NAME`, so it accepts fewer texts than this reader where terminals touch.

mod assemble;
mod atoms;
mod attributes;
mod expand;
mod items;
mod library;
mod parser;
mod reading;
mod scanner;

pub use reading::{Dialect, Reading};

use crate::notation::lower::lower as lower_tree;
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
    lower_tree(assemble::tree(text, dialect, reading), limits)
}
