//! The grammar of a list of texts, any one of which is the whole text.

use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId};
use lexiform_automata::limits::Limits;

/// Lowers a list of texts. As a regular expression, a long list would need a separate automaton for no
/// benefit.
///
/// # Errors
/// Returns an error if the list is empty, or if the texts have more bytes than a source may have.
pub fn lower(texts: &[String], limits: &Limits) -> Result<Cfg, CompileError> {
    let bytes: usize = texts.iter().map(String::len).sum();
    let most = limits.source_bytes;
    if texts.is_empty() {
        let message = "there is no text to choose";
        return Err(Problem::new(ProblemKind::Unsatisfiable, Place::Whole, message).into());
    }
    if bytes > most {
        let message = format!("the texts have {bytes} bytes; the limit `source_bytes` is {most}");
        return Err(Problem::new(ProblemKind::Limit, Place::Whole, message).into());
    }
    let mut builder = CfgBuilder::new();
    let start = builder.declare("");
    let ways: Vec<ExprId> = texts.iter().map(|text| builder.bytes(text)).collect();
    let body = builder.choice(ways);
    builder.define(start, body);
    Ok(builder.finish(start))
}
