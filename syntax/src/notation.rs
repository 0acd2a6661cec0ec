//! Readers of grammar texts, and of lists of texts.
//!
//! ```text
//!   ebnf, gbnf, lark, abnf, w3c, iso, xgrammar ── a reader ─► tree ─ lower ─► Cfg ─ terminals ─► Cfg
//!         └─ named, or recognised
//! ```

pub mod abnf;
pub mod choice;
pub mod ebnf;
pub mod extract;
pub mod gbnf;
pub mod iso;
pub mod lark;
mod lower;
mod reader;
mod reading;
mod recognise;
mod terminals;
mod tree;
pub mod w3c;
pub mod xgrammar;

pub use reader::{GrammarOptions, Notation};

use crate::schema;
use lexiform_automata::error::CompileError;
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;

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
        Some(notation) => reader::lower_as(text, notation, options, schema, limits),
        None => recognise::lower(text, options, schema, limits),
    }
}
