//! Prints a grammar in another notation.
//!
//! ```text
//!   source ─ lower: is it a grammar? ─► tree ─ plain ─► tree of constructs ─ write ─► text in the other notation
//!                                                         that all notations have
//! ```
//!
//! The text that is printed is a grammar of the same language, as the reader of its notation here reads it,
//! or there is an error that names what cannot be said, with its place in the source:
//!
//! * Regular expressions become classes, repetitions and alternatives. Look-around, intersections and
//!   complements are written out as well, where the automaton for them is small; `a - b` stays one in the
//!   notations that have it.
//! * White space that a source ignores, templates, imports and the words of Lark are written out as rules.
//! * Other grammars in a source, such as JSON Schemas, and sets of tokens are refused by name, where the
//!   notation does not have them.
//! * Rules whose names the notation does not allow are renamed, so that no two have the same name. The rule
//!   with which texts begin is called by a first rule `root` or `start`, where the notation asks for one.
//!
//! A grammar for `lark` means the same to the lark parser where it reads with Earley's algorithm and the
//! lexer `dynamic_complete`, because every terminal is one character or a text. Its other lexers take the
//! longest terminal, and may read some texts in another way.

mod names;
mod plain;
mod spelling;
mod write;

#[cfg(test)]
mod tests;

use super::lower::Problems;
use super::recognise::{GrammarOptions, Notation, lower_recognised, with_tree};
use super::tree::{Definition, Node, NodeKind};
use crate::schema;
use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::limits::Limits;
use write::Texts;

/// Returns a grammar of the same language in another notation. The notation of the source is that of the
/// options, or it is recognised.
///
/// ```
/// use lexiform::grammar::{GrammarOptions, Notation, convert};
/// use lexiform::limits::Limits;
///
/// let (options, schema, limits) = (GrammarOptions::default(), Default::default(), Limits::default());
/// let to = |notation, text| convert(text, notation, &options, &schema, &limits);
/// let iso = to(Notation::Iso, r#"list ::= item ("," item)*  item ::= [0-1]{2} | "x""#).unwrap();
/// assert_eq!(iso, "list = item, { ',', item };\nitem = 2 * ('0' | '1') | 'x';\n");
/// let error = to(Notation::Abnf, r#"list ::= <|end|>"#).unwrap_err();
/// assert!(error.to_string().starts_with("line 1, column 10: "));
/// ```
///
/// # Errors
/// Returns all problems of the source if it is no grammar, or else all parts of it that cannot be said in
/// the notation.
pub fn convert(
    text: &str,
    to: Notation,
    options: &GrammarOptions,
    schema: &schema::Options,
    limits: &Limits,
) -> Result<String, CompileError> {
    let limits = &*limits.begin();
    if to == Notation::Pest {
        let message = "grammars are not written for pest: its alternatives and repetitions read less";
        return Err(Problem::new(ProblemKind::Unsupported, Place::Whole, message).into());
    }
    let (from, cfg) = lower_recognised(text, options, schema, limits)?;
    drop(cfg);
    with_tree(text, from, options, schema, limits, |tree| {
        let mut problems = tree.problems;
        let start = tree.starts.iter().find_map(|start| {
            let mut all = tree.definitions.iter();
            all.position(|definition| tree.names.key(&definition.name) == *start)
        });
        let definitions = plain::definitions(
            &tree.definitions,
            (tree.names, start.unwrap_or(0)),
            (to, limits),
            &mut problems,
        );
        let written = write::grammar(&definitions, to, Texts::Quoted, limits, &mut problems);
        limits.cancel.unless(problems.placed(tree.text))?;
        match to {
            Notation::Lark => with_expressions(written, &definitions, (options, schema, limits)),
            _ => Ok(written),
        }
    })
}

/// Writes a grammar for the lark parser again if it matters that its texts are in quotes.
fn with_expressions(
    written: String,
    definitions: &[Definition],
    (options, schema, limits): (&GrammarOptions, &schema::Options, &Limits),
) -> Result<String, CompileError> {
    let to = Notation::Lark;
    // Texts in quotes take words from expressions in Lark. As expressions, they do not.
    let plain = GrammarOptions {
        notation: None,
        start: None,
        ..options.clone()
    };
    let takes = with_tree(&written, to, &plain, schema, limits, |tree| {
        let bodies = || tree.definitions.iter().map(|definition| &definition.body);
        Ok(!tree.problems.is_empty() || bodies().any(has_exception))
    })?;
    if !takes {
        return Ok(written);
    }
    let mut problems = Problems::default();
    let written = write::grammar(definitions, to, Texts::Expressions, limits, &mut problems);
    problems.placed(&written)?;
    Ok(written)
}

/// Returns `true` if a part is an intersection or has one. Recurses as deep as the part, which is bounded.
fn has_exception(node: &Node) -> bool {
    matches!(node.kind, NodeKind::All(_)) || node.parts().iter().any(has_exception)
}
