//! What clients are told of a compiled grammar: its findings, how each keyword is enforced, what a linter
//! says.

use lexiform::error::ProblemKind;
use serde_json::{Value, json};

use super::language::{Finding, Rejected};
use super::store::Compiled;
use crate::wire::error::Diagnosis;
use crate::wire::response::Keyword;

/// The most findings that one answer lists: a schema may hold as many keywords without effect as it has
/// bytes.
const LISTED_FINDINGS: usize = 256;

/// A registered grammar.
pub fn registered(compiled: &Compiled) -> Value {
    json!({"id": &*compiled.id, "object": "grammar", "compile_ms": compiled.micros as f64 / 1000.0,
           "enforced": enforced(compiled), "diagnostics": findings(compiled)})
}

/// What does not stop a compile.
pub fn findings(compiled: &Compiled) -> Value {
    let all = compiled.findings.iter().take(LISTED_FINDINGS);
    let all = all.map(|finding| Diagnosis::warning(&finding.problem).json());
    Value::Array(all.collect())
}

/// How each keyword is enforced.
pub fn keywords(keywords: &[Keyword]) -> Value {
    serde_json::to_value(keywords).unwrap_or_default()
}

/// How a constraint stands to what may be written under it: `exact`, where both are the same; `closed`, where
/// all that is not written are keys of objects that list theirs and say nothing of others; `narrower`, where
/// more of what it allows is not written; `partial`, where some of what it says has no effect.
pub fn enforced(compiled: &Compiled) -> &'static str {
    let closes = |finding: &Finding| finding.problem.kind == ProblemKind::Closed;
    let narrows = |finding: &Finding| closes(finding) || finding.problem.kind == ProblemKind::Narrowed;
    match &compiled.findings[..] {
        [] => "exact",
        findings if findings.iter().all(closes) => "closed",
        findings if findings.iter().all(narrows) => "narrower",
        _ => "partial",
    }
}

/// What a linter says of a constraint that compiles, or does not.
pub fn lint(compiled: Result<&Compiled, &Rejected>) -> Value {
    match compiled {
        Ok(compiled) => json!({"valid": true, "satisfiable": true, "id": &*compiled.id,
                               "enforced": enforced(compiled), "diagnostics": findings(compiled)}),
        Err(rejected) => {
            let problems = &rejected.error.problems;
            let unsatisfiable = problems
                .iter()
                .any(|problem| problem.kind == ProblemKind::Unsatisfiable);
            let all = problems.iter().map(|problem| Diagnosis::error(problem).json());
            json!({"valid": false, "satisfiable": if unsatisfiable { json!(false) } else { Value::Null },
                   "id": null, "enforced": "none", "diagnostics": all.collect::<Vec<_>>()})
        }
    }
}
