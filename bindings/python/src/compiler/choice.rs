//! The grammar of a list of texts.

use lexiform::error::{CompileError, Place, Problem, ProblemKind};
use lexiform::grammar::{Cfg, CfgBuilder, ExprId};
use lexiform::limits::Limits;

/// The grammar whose texts are these. As a regular expression, a long list would be an automaton of its own for nothing.
///
/// # Errors
/// When there is none, or when they have more bytes than a source may have.
pub(super) fn one_of(texts: &[String], limits: &Limits) -> Result<Cfg, CompileError> {
    let bytes: usize = texts.iter().map(String::len).sum();
    let (kind, message) = match (texts.len(), limits.source_bytes) {
        (0, _) => (
            ProblemKind::Unsatisfiable,
            "there is no text to choose".to_owned(),
        ),
        (_, most) if bytes > most => {
            let message = format!("the texts have {bytes} bytes; the limit `source_bytes` is {most}");
            (ProblemKind::Limit, message)
        }
        _ => return Ok(alternatives(texts)),
    };
    Err(Problem::new(kind, Place::Whole, message).into())
}

fn alternatives(texts: &[String]) -> Cfg {
    let mut builder = CfgBuilder::new();
    let start = builder.declare("");
    let ways: Vec<ExprId> = texts.iter().map(|text| builder.bytes(text)).collect();
    let body = builder.choice(ways);
    builder.define(start, body);
    builder.finish(start)
}
